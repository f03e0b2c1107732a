/* A system call every few microseconds: clock_calls MILLISECONDS */
#include <time.h>

#include "burn.h"

DEFINE_SINK;

NOINLINE void between_calls(void) { sink += burn(MILLISECOND / 250); }

NOINLINE uint64_t cpu_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int main(int argc, char **argv) {
    uint64_t end = argument(argc, argv, 1, 300);
    while (cpu_now() < end)
        between_calls();
    return 0;
}
