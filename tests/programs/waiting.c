/* Waits in three ways and prints how long each took by its own clock, and for how much of that it
 * was ready to run but had no CPU: `sleeps NS`, `sleeps_queued NS`, and so on for `locks` and
 * `reads`; computes in between. */
#include "burn.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

DEFINE_SINK;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2], held[2];

struct times {
    long clock, queued;
};

/* The second number there is the time in the queue for a CPU. */
static long queued(void) {
    char text[64] = "";
    int file = open("/proc/thread-self/schedstat", O_RDONLY);
    if (file < 0 || read(file, text, sizeof text - 1) < 0) return 0;
    close(file);
    char *second = text;
    strtol(text, &second, 10);
    return strtol(second, NULL, 10);
}

static struct times now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (struct times){time.tv_sec * 1000000000 + time.tv_nsec, queued()};
}

static struct times since(struct times before) {
    struct times after = now();
    return (struct times){after.clock - before.clock, after.queued - before.queued};
}

static void sleep_ms(int milliseconds) {
    struct timespec time = {0, milliseconds * 1000000L};
    nanosleep(&time, NULL);
}

NOINLINE struct times sleeps(void) {
    struct times before = now();
    for (int i = 0; i < 20; i++) sleep_ms(10);
    return since(before);
}

NOINLINE struct times locks(void) {
    struct times before = now();
    pthread_mutex_lock(&lock);
    struct times waited = since(before);
    pthread_mutex_unlock(&lock);
    return waited;
}

NOINLINE struct times reads(void) {
    char byte;
    struct times before = now();
    if (read(ends[0], &byte, 1) != 1) _exit(1);
    return since(before);
}

NOINLINE static void *helper(void *unused) {
    pthread_mutex_lock(&lock);
    if (write(held[1], "x", 1) != 1) _exit(1);
    sleep_ms(200);
    pthread_mutex_unlock(&lock);
    sleep_ms(200);
    if (write(ends[1], "x", 1) != 1) _exit(1);
    return unused;
}

NOINLINE void computes(void) { sink += burn(200 * MILLISECOND); }

static void say(const char *function, struct times times) {
    printf("%s %ld\n%s_queued %ld\n", function, times.clock, function, times.queued);
}

int main(void) {
    pthread_t thread;
    char byte;
    if (pipe(ends) != 0 || pipe(held) != 0) return 1;
    pthread_create(&thread, NULL, helper, NULL);
    if (read(held[0], &byte, 1) != 1) return 1;
    struct times locked = locks();
    struct times read_for = reads();
    pthread_join(thread, NULL);
    struct times slept = sleeps();
    computes();
    say("sleeps", slept);
    say("locks", locked);
    say("reads", read_for);
    return 0;
}
