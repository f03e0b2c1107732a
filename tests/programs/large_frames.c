/* Two functions in turn whose frames are larger than what is copied of a stack, and than what is
 * read at once: large_frames MILLISECONDS */
#include "burn.h"

DEFINE_SINK;
DEFINE_LAST_WORDS

#define SIZE (300 * 1000)

/* A millisecond or so, in which all of the array changes. */
static inline __attribute__((always_inline)) void work(volatile char *array) {
    for (uint64_t round = 0; round < 10; round++) {
        sink += burn(MILLISECOND / 20);
        for (long at = 0; at < SIZE; at += 64)
            array[at] += (char)(round + 1);
    }
}

NOINLINE void in_left(volatile char *array) { work(array); }
NOINLINE void in_right(volatile char *array) { work(array); }

NOINLINE void left(void) {
    volatile char array[SIZE];
    in_left(array);
    sink += (uint64_t)array[0];
}

NOINLINE void right(void) {
    volatile char array[SIZE];
    in_right(array);
    sink += (uint64_t)array[0];
}

int main(int argc, char **argv) {
    uint64_t rounds = argument(argc, argv, 1, 200) / 2;
    for (uint64_t i = 0; i < rounds; i++) {
        left();
        right();
    }
    last_words();
    return 0;
}
