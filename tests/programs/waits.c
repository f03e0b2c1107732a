/* A target to attach to and to interrupt: works a little, prints that it is ready, works until its
 * standard input ends, and then prints the result. */
#include "burn.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

DEFINE_SINK;

NOINLINE void until_input(void) { sink += burn(MILLISECOND / 4); }

int main(void) {
    char byte;
    fcntl(0, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 400; i++)
        until_input();
    printf("ready\n");
    fflush(stdout);
    while (read(0, &byte, 1) != 0)
        until_input();
    printf("done\n");
    return 0;
}
