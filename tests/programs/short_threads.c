/* Threads that live for about a millisecond, one after the other: short_threads COUNT */
#include "burn.h"
#include <pthread.h>

DEFINE_SINK;

NOINLINE void blink(void) { sink += burn(MILLISECOND); }

NOINLINE void *short_life(void *unused) {
    blink();
    sink++;
    return unused;
}

int main(int argc, char **argv) {
    uint64_t count = argument(argc, argv, 1, 500);
    for (uint64_t i = 0; i < count; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, short_life, NULL);
        pthread_join(thread, NULL);
    }
    return 0;
}
