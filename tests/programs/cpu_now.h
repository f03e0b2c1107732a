/* A clock that takes a system call. */
#ifndef CPU_NOW_H
#define CPU_NOW_H

#include <time.h>

#include "burn.h"

/* CPU time of the process, in milliseconds. */
NOINLINE uint64_t cpu_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#endif
