/* A program that execs itself again and again: execs TIMES MILLISECONDS */
#include "burn.h"
#include <stdio.h>
#include <unistd.h>

DEFINE_SINK;

NOINLINE void until_exec(uint64_t n) { sink += burn(n); }

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 20);
    until_exec(argument(argc, argv, 2, 20) * MILLISECOND);
    if (times > 1) {
        char left[32];
        snprintf(left, sizeof left, "%llu", (unsigned long long)(times - 1));
        execl("/proc/self/exe", argv[0], left, argc > 2 ? argv[2] : "20", (char *)NULL);
        return 1;
    }
    return 0;
}
