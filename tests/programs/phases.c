/* A program that does one thing, execs itself, and does another: phases MILLISECONDS MILLISECONDS */
#include "burn.h"
#include <unistd.h>

DEFINE_SINK;

NOINLINE void before_exec(uint64_t n) { sink += burn(n); }
NOINLINE void after_exec(uint64_t n) { sink += 3 * burn(n); }

int main(int argc, char **argv) {
    if (argc > 2) {
        before_exec(argument(argc, argv, 1, 100) * MILLISECOND);
        execl("/proc/self/exe", argv[0], argv[2], (char *)NULL);
        return 1;
    }
    after_exec(argument(argc, argv, 1, 100) * MILLISECOND);
    return 0;
}
