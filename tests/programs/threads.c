/* Two busy threads, each below 40 KB of its own stack: threads MILLISECONDS */
#include "burn.h"
#include <pthread.h>

DEFINE_SINK;

static uint64_t rounds;

NOINLINE void busy(uint64_t n) { sink += burn(n); }

/* Each frame is a bit more than 4 KB. */
NOINLINE void pile(int levels) {
    volatile char room[4096];
    room[0] = (char)levels;
    room[sizeof room - 1] = (char)levels;
    if (levels == 0) {
        for (int i = 0; i < 100; i++)
            busy(rounds / 100);
    } else {
        pile(levels - 1);
    }
    sink += (uint64_t)room[0];
}

NOINLINE void *thread_main(void *unused) {
    pile(10);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    rounds = argument(argc, argv, 1, 300) * MILLISECOND;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, thread_main, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
