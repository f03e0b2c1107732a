/* A function with an array of which it uses only the beginning, so that pages of its frame are not
 * in memory. It has one caller, or two in turn, which the innermost function reveals:
 * half_used_frame steady|turns MILLISECONDS */
#include "burn.h"
#include <string.h>

DEFINE_SINK;
DEFINE_LAST_WORDS

NOINLINE void in_left(void) { sink += burn(MILLISECOND); }
NOINLINE void in_right(void) { sink += burn(MILLISECOND); }

/* Larger than what is compared, and the same for both callers. */
NOINLINE void between(int is_left) {
    volatile char room[1024];
    memset((void *)room, 0, sizeof room);
    if (is_left)
        in_left();
    else
        in_right();
    sink += (uint64_t)room[0];
}

NOINLINE void half_used(int is_left) {
    volatile char array[1 << 20];
    for (int at = 0; at < 4096; at++)
        array[at] = (char)(sink + (uint64_t)at);
    between(is_left);
    sink += (uint64_t)array[0];
}

NOINLINE void left(void) {
    half_used(1);
    sink++;
}

NOINLINE void right(void) {
    half_used(0);
    sink++;
}

int main(int argc, char **argv) {
    uint64_t rounds = argument(argc, argv, 2, 200);
    int is_steady = argc > 1 && strcmp(argv[1], "steady") == 0;
    for (uint64_t i = 0; i < rounds; i++) {
        if (is_steady || i % 2 == 0)
            left();
        else
            right();
    }
    last_words();
    return 0;
}
