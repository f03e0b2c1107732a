/* Answers through its standard streams and exit status: reports [STATUS|kill SIGNAL] */
#include "burn.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

DEFINE_SINK;

int main(int argc, char **argv) {
    char line[256];
    sink += burn(20 * MILLISECOND);
    if (fgets(line, sizeof line, stdin) != NULL)
        printf("read: %s", line);
    fflush(stdout);
    fprintf(stderr, "to stderr\n");
    if (argc > 2 && strcmp(argv[1], "kill") == 0)
        raise((int)argument(argc, argv, 2, SIGTERM));
    return (int)argument(argc, argv, 1, 0);
}
