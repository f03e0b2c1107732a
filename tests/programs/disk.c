/* Waits for the disk: writes a file with fsync, then reads it back around the page cache. Says how
 * long each took, less the time on a CPU, by its own clocks, and how much of that it was ready and
 * waited for a CPU: `writes NS NS`, `reads NS NS`, `removes NS NS`.
 * Usage: disk FILE */
#define _GNU_SOURCE
#include "burn.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Nanoseconds off the CPU, and those of them in a run queue (Documentation/scheduler/sched-stats). */
struct waited { long all, queued; };

static struct waited waited(void) {
    unsigned long on_cpu, queued;
    FILE *stat = fopen("/proc/thread-self/schedstat", "r");
    if (!stat || fscanf(stat, "%lu %lu", &on_cpu, &queued) != 2) fail("schedstat");
    fclose(stat);
    long all = clock_of(CLOCK_MONOTONIC) - clock_of(CLOCK_THREAD_CPUTIME_ID);
    return (struct waited){all, queued};
}

static struct waited since(struct waited before) {
    struct waited now = waited();
    return (struct waited){now.all - before.all, now.queued - before.queued};
}

static void say(const char *what, struct waited time) {
    printf("%s %ld %ld\n", what, time.all, time.queued);
}

NOINLINE struct waited writes(const char *file, char *block) {
    struct waited before = waited();
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) fail("open");
    for (int i = 0; i < BLOCKS; i++) {
        if (write(fd, block, BLOCK) != BLOCK) fail("write");
        if (fsync(fd) != 0) fail("fsync");
    }
    close(fd);
    return since(before);
}

NOINLINE struct waited reads(const char *file, char *block) {
    struct waited before = waited();
    int fd = open(file, O_RDONLY | O_DIRECT);
    if (fd < 0 && errno == EINVAL) fd = open(file, O_RDONLY);
    if (fd < 0) fail("open");
    for (int i = 0; i < BLOCKS; i++)
        if (read(fd, block, BLOCK) != BLOCK) fail("read");
    close(fd);
    return since(before);
}

NOINLINE struct waited removes(const char *file) {
    struct waited before = waited();
    unlink(file);
    return since(before);
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
