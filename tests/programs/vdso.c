/* The clock, read through the vdso: vdso MILLISECONDS */
#include "burn.h"
#include <time.h>

DEFINE_SINK;

NOINLINE void clocks(uint64_t times) {
    struct timespec now;
    for (uint64_t i = 0; i < times; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        sink += (uint64_t)now.tv_nsec;
    }
}

int main(int argc, char **argv) {
    clocks(argument(argc, argv, 1, 200) * 20000);
    return 0;
}
