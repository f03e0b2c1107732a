/* Waits for the disk: writes a file with fsync, then reads it without the page cache. Prints how
 * long each was off the CPU by its own clocks, and how often it waited and was preempted:
 * `writes NS TIMES TIMES`, `reads NS TIMES TIMES`, `removes NS TIMES TIMES`. The time includes
 * interrupts and the hypervisor in calls that waited, which no clock of a thread counts.
 * Usage: disk FILE */
#define _GNU_SOURCE
#include "burn.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, BLOCKS = 24 };

static long clock_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    _exit(1);
}

struct waited { long time, waits, preemptions; };

static struct waited waited(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    long time = clock_of(CLOCK_MONOTONIC) - clock_of(CLOCK_THREAD_CPUTIME_ID);
    return (struct waited){time, usage.ru_nvcsw, usage.ru_nivcsw};
}

/* Adds the wait of one call. */
static void add(struct waited *sum, struct waited before) {
    struct waited now = waited();
    if (now.waits != before.waits) sum->time += now.time - before.time;
    sum->waits += now.waits - before.waits;
    sum->preemptions += now.preemptions - before.preemptions;
}

static void say(const char *what, struct waited time) {
    printf("%s %ld %ld %ld\n", what, time.time, time.waits, time.preemptions);
}

NOINLINE struct waited writes(const char *file, char *block) {
    struct waited sum = {0};
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) fail("open");
    for (int i = 0; i < BLOCKS; i++) {
        struct waited before = waited();
        if (write(fd, block, BLOCK) != BLOCK) fail("write");
        if (fsync(fd) != 0) fail("fsync");
        add(&sum, before);
    }
    close(fd);
    return sum;
}

NOINLINE struct waited reads(const char *file, char *block) {
    struct waited sum = {0};
    int fd = open(file, O_RDONLY | O_DIRECT);
    if (fd < 0 && errno == EINVAL) fd = open(file, O_RDONLY);
    if (fd < 0) fail("open");
    for (int i = 0; i < BLOCKS; i++) {
        struct waited before = waited();
        if (read(fd, block, BLOCK) != BLOCK) fail("read");
        add(&sum, before);
    }
    close(fd);
    return sum;
}

NOINLINE struct waited removes(const char *file) {
    struct waited sum = {0}, before = waited();
    unlink(file);
    add(&sum, before);
    return sum;
}

int main(int argc, char **argv) {
    char *block = aligned_alloc(4096, BLOCK);
    if (argc < 2 || !block) return 2;
    memset(block, 7, BLOCK);
    say("writes", writes(argv[1], block));
    say("reads", reads(argv[1], block));
    say("removes", removes(argv[1]));
    return 0;
}
