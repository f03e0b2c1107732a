/* hits spin|touch|malloc TIMES: does one thing so many times, below 20 functions of 256 bytes each. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "burn.h"

DEFINE_SINK;

/* A millisecond of work each time. */
NOINLINE static void spin(uint64_t times) {
    while (times--)
        sink += burn(MILLISECOND);
}

/* Touches this many new pages. */
NOINLINE static void touch(uint64_t times) {
    const uint64_t page = 4096, pages = 4096;
    while (times > 0) {
        uint64_t now = times < pages ? times : pages;
        char *memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            exit(1);
        madvise(memory, pages * page, MADV_NOHUGEPAGE);
        for (uint64_t i = 0; i < now; i++)
            memory[i * page] = 1;
        munmap(memory, pages * page);
        times -= now;
    }
}

NOINLINE static void allocate(uint64_t times) {
    while (times--) {
        char *volatile memory = malloc(64);
        free(memory);
    }
}

NOINLINE static void below(int depth, void (*work)(uint64_t), uint64_t times) {
    volatile char frame[256];
    frame[0] = (char)depth;
    if (depth == 0)
        work(times);
    else
        below(depth - 1, work, times);
    sink += (uint64_t)frame[0];
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 2, 1);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "spin") == 0)
        below(20, spin, times);
    else if (strcmp(what, "touch") == 0)
        below(20, touch, times);
    else if (strcmp(what, "malloc") == 0)
        below(20, allocate, times);
    else
        return 2;
    return 0;
}
