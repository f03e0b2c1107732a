/* Waits for the disk: writes a file with fsync, then reads it back around the page cache. Says how
 * long each took, less the time on a CPU, by its own clocks: `writes NS`, `reads NS`, `removes NS`.
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

/* What passes while this thread is on no CPU. */
static long waited(void) { return clock_of(CLOCK_MONOTONIC) - clock_of(CLOCK_THREAD_CPUTIME_ID); }

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    _exit(1);
}

NOINLINE long writes(const char *file, char *block) {
    long before = waited();
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) fail("open");
    for (int i = 0; i < BLOCKS; i++) {
        if (write(fd, block, BLOCK) != BLOCK) fail("write");
        if (fsync(fd) != 0) fail("fsync");
    }
    close(fd);
    return waited() - before;
}

NOINLINE long reads(const char *file, char *block) {
    long before = waited();
    int fd = open(file, O_RDONLY | O_DIRECT);
    if (fd < 0 && errno == EINVAL) fd = open(file, O_RDONLY);
    if (fd < 0) fail("open");
    for (int i = 0; i < BLOCKS; i++)
        if (read(fd, block, BLOCK) != BLOCK) fail("read");
    close(fd);
    return waited() - before;
}

NOINLINE long removes(const char *file) {
    long before = waited();
    unlink(file);
    return waited() - before;
}

int main(int argc, char **argv) {
    char *block = aligned_alloc(4096, BLOCK);
    if (argc < 2 || !block) return 2;
    memset(block, 7, BLOCK);
    long written = writes(argv[1], block);
    long read = reads(argv[1], block);
    long removed = removes(argv[1]);
    printf("writes %ld\nreads %ld\nremoves %ld\n", written, read, removed);
    return 0;
}
