/* Fixed work: a chain of dependent multiplications, whose time depends neither on its place nor on
 * other load. */
#ifndef BURN_H
#define BURN_H

#include <stdint.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

/* Where results go, so that no work is optimized away. */
extern volatile uint64_t sink;
#define DEFINE_SINK volatile uint64_t sink

/* Rounds of a multiplication and an addition, each of which waits for the one before. */
static inline __attribute__((always_inline)) uint64_t burn(uint64_t rounds) {
    uint64_t x = rounds | 1;
    for (uint64_t i = 0; i < rounds; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

/* One millisecond of work, give or take a few. */
#define MILLISECOND ((uint64_t)1100000)

/* The part of a stack beyond its dump is read from the running program. Programs that need all
 * samples whole end with shallow work, so that nothing deep is read too late. It is no call: that
 * would overwrite a return address of the deep part. */
#define DEFINE_LAST_WORDS                                                                          \
    static inline __attribute__((always_inline)) void last_words(void) {                           \
        sink += burn(150 * MILLISECOND);                                                           \
    }

/* A number from the command line. */
static inline uint64_t argument(int argc, char **argv, int index, uint64_t otherwise) {
    return index < argc ? strtoull(argv[index], NULL, 10) : otherwise;
}

#endif
