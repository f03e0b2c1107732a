/* Threads of a given length. Each does 60 % of its work in one function, then 30 % in another, then
 * 10 % in a third: short_threads COUNT MICROSECONDS AT_ONCE [wait] */
#define _GNU_SOURCE
#include "burn.h"
#include <pthread.h>
#include <stdio.h>

DEFINE_SINK;

static uint64_t tenth;

NOINLINE void sixty(void) { sink += burn(6 * tenth); }
NOINLINE void thirty(void) { sink += burn(3 * tenth); }
NOINLINE void ten(void) { sink += burn(tenth); }

static void *short_thread(void *unused) {
    sixty();
    thirty();
    ten();
    sink++;
    return unused;
}

int main(int argc, char **argv) {
    uint64_t count = argument(argc, argv, 1, 1000);
    uint64_t at_once = argument(argc, argv, 3, 1);
    tenth = argument(argc, argv, 2, 1000) * MILLISECOND / 10000;
    if (argc > 4) {
        /* Ready to be attached to. */
        puts("ready");
        fflush(stdout);
        getchar();
    }
    for (uint64_t i = 0; i < count; i += at_once) {
        pthread_t threads[64];
        for (uint64_t j = 0; j < at_once && j < 64; j++)
            if (pthread_create(&threads[j], NULL, short_thread, NULL) != 0) {
                fputs("short_threads: cannot create a thread\n", stderr);
                return 1;
            }
        for (uint64_t j = 0; j < at_once && j < 64; j++)
            pthread_join(threads[j], NULL);
    }
    return 0;
}
