/* Deep recursion that returns at once, each time for another caller, and shallow calls in between.
 * The innermost function reveals the caller, so that a stack with any other outer part is wrong:
 * returns MILLISECONDS [FRAMES] */
#include "burn.h"
#include "cpu_now.h"

DEFINE_SINK;
DEFINE_LAST_WORDS

/* Twice as long as the recursion takes, so that many samples are read too late. */
#define STAY (MILLISECOND / 25)

NOINLINE void in_direct(void) { sink += burn(STAY); }
NOINLINE void in_lower(void) { sink += burn(STAY); }
NOINLINE void in_pointer(void) { sink += burn(STAY); }
NOINLINE void in_shallow(void) { sink += burn(STAY / 4); }

NOINLINE uint64_t rec(uint64_t depth, void (*innermost)(void)) {
    volatile uint64_t here[8] = {depth};
    if (depth == 0)
        innermost();
    else
        here[1] = rec(depth - 1, innermost);
    return here[0] + here[1];
}

NOINLINE void direct(uint64_t frames) { sink += rec(frames, in_direct); }

NOINLINE void lower(uint64_t frames) {
    volatile char room[200];
    room[0] = (char)frames;
    sink += rec(frames, in_lower) + (uint64_t)room[0];
}

NOINLINE void pointer(uint64_t frames, uint64_t (*volatile call)(uint64_t, void (*)(void))) {
    sink += call(frames, in_pointer);
}

NOINLINE void shallow(uint64_t depth) {
    volatile char room[48];
    room[0] = (char)depth;
    if (depth == 0)
        in_shallow();
    else
        shallow(depth - 1);
    sink += (uint64_t)room[0];
}

int main(int argc, char **argv) {
    uint64_t end = argument(argc, argv, 1, 500);
    uint64_t frames = argument(argc, argv, 2, 2000);
    for (uint64_t round = 0; cpu_now() < end; round++) {
        direct(frames);
        for (int i = 0; i < 200; i++)
            cpu_now();
        lower(frames);
        shallow(round % 40);
        pointer(frames, rec);
    }
    last_words();
    return 0;
}
