/* Two callers in turn of one deep recursion, whose innermost function reveals which caller it was:
 * alternating_callers MILLISECONDS */
#include "burn.h"

DEFINE_SINK;
DEFINE_LAST_WORDS

/* Ten times as long as the recursion takes. */
#define STAY (MILLISECOND / 50)

NOINLINE void in_left(void) { sink += burn(STAY); }
NOINLINE void in_right(void) { sink += burn(STAY); }

/* Each frame is a bit more than 4 KB; a stack dump holds only these. */
NOINLINE void common(int levels, void (*innermost)(void)) {
    volatile char room[4096];
    room[0] = (char)levels;
    room[sizeof room - 1] = (char)levels;
    if (levels == 0)
        innermost();
    else
        common(levels - 1, innermost);
    sink += (uint64_t)room[0];
}

NOINLINE void left(void) {
    common(20, in_left);
    sink += 1;
}

NOINLINE void right(void) {
    common(20, in_right);
    sink += 2;
}

int main(int argc, char **argv) {
    uint64_t rounds = argument(argc, argv, 1, 200) * MILLISECOND / STAY / 2;
    for (uint64_t i = 0; i < rounds; i++) {
        left();
        right();
    }
    last_words();
    return 0;
}
