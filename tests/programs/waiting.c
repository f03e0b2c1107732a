/* Waits in three ways and says how long each took by its own clock: `sleeps NS`, `locks NS`,
 * `reads NS`; computes in between. */
#include "burn.h"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

DEFINE_SINK;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2], held[2];

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void nap(int milliseconds) {
    struct timespec time = {0, milliseconds * 1000000L};
    nanosleep(&time, NULL);
}

NOINLINE long sleeps(void) {
    long before = now();
    for (int i = 0; i < 20; i++) nap(10);
    return now() - before;
}

NOINLINE long locks(void) {
    long before = now();
    pthread_mutex_lock(&lock);
    long after = now();
    pthread_mutex_unlock(&lock);
    return after - before;
}

NOINLINE long reads(void) {
    char byte;
    long before = now();
    if (read(ends[0], &byte, 1) != 1) _exit(1);
    return now() - before;
}

NOINLINE static void *helper(void *unused) {
    pthread_mutex_lock(&lock);
    if (write(held[1], "x", 1) != 1) _exit(1);
    nap(200);
    pthread_mutex_unlock(&lock);
    nap(200);
    if (write(ends[1], "x", 1) != 1) _exit(1);
    return unused;
}

NOINLINE void computes(void) { sink += burn(200 * MILLISECOND); }

int main(void) {
    pthread_t thread;
    char byte;
    if (pipe(ends) != 0 || pipe(held) != 0) return 1;
    pthread_create(&thread, NULL, helper, NULL);
    if (read(held[0], &byte, 1) != 1) return 1;
    long locked = locks();
    long read_for = reads();
    pthread_join(thread, NULL);
    long slept = sleeps();
    computes();
    printf("sleeps %ld\nlocks %ld\nreads %ld\n", slept, locked, read_for);
    return 0;
}
