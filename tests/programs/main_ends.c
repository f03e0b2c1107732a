/* The main thread ends while another one still runs, which says that it is ready and waits for the
 * end of its input. Then it works below a stack deeper than what is copied of it: main_ends
 * MILLISECONDS */
#include "burn.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

DEFINE_SINK;
DEFINE_LAST_WORDS

static uint64_t rounds;

/* Whether the main thread has ended: its state is the process's in /proc. */
static int is_alone(void) {
    char line[64] = "";
    FILE *file = fopen("/proc/self/stat", "r");
    if (file == NULL || fgets(line, sizeof line, file) == NULL)
        abort();
    fclose(file);
    return strstr(line, ") Z ") != NULL;
}

NOINLINE void bottom(void) { sink += burn(rounds); }

NOINLINE void descend(uint64_t depth) {
    volatile char here[4000];
    here[depth] = 1;
    if (depth == 0)
        bottom();
    else
        descend(depth - 1);
    sink += here[depth];
}

static void *live_on(void *unused) {
    while (!is_alone())
        continue;
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    descend(40);
    last_words();
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    rounds = argument(argc, argv, 1, 500) * MILLISECOND;
    if (pthread_create(&thread, NULL, live_on, NULL) != 0)
        abort();
    pthread_exit(NULL);
}
