/* Long threads that start while short ones come and go:
 * mixed_short_threads SHORT_MICROSECONDS LONG LONG_MILLISECONDS */
#include "burn.h"
#include <pthread.h>

DEFINE_SINK;

enum { SHORT_FOR_EACH = 20, MOST = 64 };

static uint64_t short_work, long_work;

NOINLINE void in_short(void) { sink += burn(short_work); }
NOINLINE void in_long(void) { sink += burn(long_work); }

static void *short_thread(void *unused) {
    in_short();
    sink++;
    return unused;
}

static void *long_thread(void *unused) {
    in_long();
    sink++;
    return unused;
}

static void start(pthread_t *thread, void *(*body)(void *)) {
    if (pthread_create(thread, NULL, body, NULL) != 0)
        abort();
}

int main(int argc, char **argv) {
    short_work = argument(argc, argv, 1, 1000) * MILLISECOND / 1000;
    uint64_t count = argument(argc, argv, 2, 8);
    long_work = argument(argc, argv, 3, 100) * MILLISECOND;
    pthread_t threads[MOST];
    for (uint64_t i = 0; i < count && i < MOST; i++) {
        pthread_t thread;
        for (int j = 0; j < SHORT_FOR_EACH; j++) {
            start(&thread, short_thread);
            pthread_join(thread, NULL);
        }
        start(&threads[i], long_thread);
    }
    for (uint64_t i = 0; i < count && i < MOST; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
