/* Enables sampling only in the middle of waits, through two FIFOs, and prints how long that was by
 * its own clock, at least and at most: `until_off NS NS`, and the part of a wait that began before:
 * `from_on NS NS`. controlled_waits COMMANDS ANSWERS */
#define _GNU_SOURCE
#include "burn.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

DEFINE_SINK;

static FILE *commands, *answers;
static int ends[3][2];
static atomic_int thread_id, waits_for = -1;

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void sleep_ms(int milliseconds) {
    struct timespec time = {0, milliseconds * 1000000L};
    nanosleep(&time, NULL);
}

static void request(const char *command) {
    char answer[8] = "";
    fprintf(commands, "%s\n", command);
    fflush(commands);
    if (!fgets(answer, sizeof answer, answers) || strcmp(answer, "ack\n") != 0)
        exit(9);
}

static void until_released(int number) {
    char byte;
    atomic_store(&waits_for, number);
    if (read(ends[number][0], &byte, 1) != 1) _exit(1);
    sink++;
}

/* Returns when the thread waits for that, by /proc: `TID (NAME) STATE`. */
static void until_it_waits_for(int number) {
    for (;;) {
        char path[64], line[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&thread_id));
        int file = atomic_load(&waits_for) == number ? open(path, O_RDONLY) : -1;
        if (file >= 0 && read(file, line, sizeof line - 1) > 0 && strstr(line, ") S")) {
            close(file);
            return;
        }
        if (file >= 0) close(file);
        sleep_ms(1);
    }
}

static void let_go(int number) {
    if (write(ends[number][1], "x", 1) != 1) _exit(1);
}

NOINLINE void never_on(void) { until_released(0); sink++; }
NOINLINE void from_on(void) { until_released(1); sink++; }
NOINLINE void until_off(void) { until_released(2); sink++; }

static void *waits(void *unused) {
    atomic_store(&thread_id, (int)syscall(SYS_gettid));
    never_on();
    from_on();
    until_off();
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    long before_on, on, before_go, go, before_off, off;
    commands = fopen(argv[1], "w");
    answers = fopen(argv[argc - 1], "r");
    for (int i = 0; i < 3; i++)
        if (pipe(ends[i]) != 0) return 1;
    pthread_create(&thread, NULL, waits, NULL);
    until_it_waits_for(0);
    sleep_ms(100);
    let_go(0);
    until_it_waits_for(1);
    sleep_ms(100);
    before_on = now();
    request("enable");
    on = now();
    sleep_ms(100);
    before_go = now();
    let_go(1);
    until_it_waits_for(2);
    go = now();
    sleep_ms(100);
    before_off = now();
    request("disable");
    off = now();
    sleep_ms(100);
    let_go(2);
    pthread_join(thread, NULL);
    printf("from_on %ld %ld\n", before_go - on, go - before_on);
    printf("until_off %ld %ld\n", before_off - go, off - before_go);
    return 0;
}
