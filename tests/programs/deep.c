/* Recursion to a given depth, then work at the bottom: deep DEPTH MILLISECONDS */
#include "burn.h"

DEFINE_SINK;
DEFINE_LAST_WORDS

NOINLINE void bottom(uint64_t rounds) { sink += burn(rounds); }

NOINLINE uint64_t descend(uint64_t depth, uint64_t rounds) {
    volatile uint64_t here = depth;
    if (depth == 0)
        bottom(rounds);
    else
        here += descend(depth - 1, rounds);
    return here + 1;
}

int main(int argc, char **argv) {
    uint64_t depth = argument(argc, argv, 1, 100);
    uint64_t rounds = argument(argc, argv, 2, 200) * MILLISECOND;
    /* descend itself is a frame, as is the one with depth 0. */
    sink += descend(depth - 1, rounds);
    last_words();
    return 0;
}
