/* Waits in ways that a tracer could disturb, beside a thread that is busy, and says how often a
 * wait was interrupted, and how much CPU time all took, in nanoseconds. */
#include "burn.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

DEFINE_SINK;

static volatile int over;

static void *busy(void *unused) {
    (void)unused;
    while (!over)
        sink += burn(MILLISECOND / 10);
    return NULL;
}

int main(int argc, char **argv) {
    uint64_t sleeps = argument(argc, argv, 1, 20);
    pthread_t thread;
    struct epoll_event event;
    int interrupted = 0, epoll = epoll_create1(0);
    pthread_create(&thread, NULL, busy, NULL);
    for (uint64_t i = 0; i < sleeps; i++)
        if (epoll_wait(epoll, &event, 1, 50) < 0 && errno == EINTR)
            interrupted++;
    over = 1;
    pthread_join(thread, NULL);
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    printf("%d %lld\n", interrupted, used.tv_sec * 1000000000LL + used.tv_nsec);
    return 0;
}
