// Exceptions through several frames: libgcc's own unwinder at work, and rethrowing.
#include "burn.h"

#include <stdexcept>

DEFINE_SINK;

extern "C" NOINLINE void thrower(int depth, uint64_t rounds) {
    sink += burn(rounds);
    if (depth == 0)
        throw std::runtime_error("bottom");
    thrower(depth - 1, rounds);
    sink++;
}

extern "C" NOINLINE void catcher(uint64_t rounds) {
    try {
        thrower(20, rounds);
    } catch (const std::exception &) {
        sink++;
    }
}

int main(int argc, char **argv) {
    uint64_t times = argument(argc, argv, 1, 20000);
    for (uint64_t i = 0; i < times; i++)
        catcher(200);
    return 0;
}
