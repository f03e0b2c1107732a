/* Two phases in turn, each deeper than a stack dump; the second recurses slowly:
 * deep_phases MILLISECONDS */
#include "burn.h"

DEFINE_SINK;
DEFINE_LAST_WORDS

/* The work of each phase. */
#define STAY (40 * MILLISECOND)
#define LEVELS 400

/* Each frame is a bit more than 256 bytes. */
NOINLINE void at_once(int levels) {
    volatile char room[256];
    room[0] = (char)levels;
    if (levels == 0)
        sink += burn(STAY);
    else
        at_once(levels - 1);
    sink += (uint64_t)room[0];
}

NOINLINE void slowly(int levels) {
    volatile char room[256];
    room[0] = (char)levels;
    sink += burn(STAY / LEVELS);
    if (levels > 0) slowly(levels - 1);
    sink += (uint64_t)room[0];
}

NOINLINE void first(void) {
    at_once(LEVELS);
    sink += 1;
}

NOINLINE void second(void) {
    slowly(LEVELS);
    sink += 2;
}

int main(int argc, char **argv) {
    uint64_t rounds = argument(argc, argv, 1, 200) * MILLISECOND / STAY / 2;
    for (uint64_t i = 0; i < rounds; i++) {
        first();
        second();
    }
    last_words();
    return 0;
}
