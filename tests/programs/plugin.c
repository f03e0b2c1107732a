/* A library for loader.c. NAME names its function, PADDING shifts its code. */
#include "burn.h"

static volatile uint64_t result;

#define JOIN(a, b) a##b
#define NAMED(name) JOIN(in_, name)

#ifdef PADDING
__attribute__((used)) void padding(void) { __asm__ volatile(".skip 4096, 0x90"); }
#endif

NOINLINE void NAMED(NAME)(uint64_t rounds) { result += burn(rounds); }

void entry(uint64_t rounds) {
    NAMED(NAME)(rounds);
    result++;
}
