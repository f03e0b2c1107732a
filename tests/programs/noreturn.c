/* A function that ends in a call that never returns: the return address lies behind its end. */
#include "burn.h"
#include <unistd.h>

DEFINE_SINK;

NOINLINE __attribute__((noreturn)) void never_returns(uint64_t rounds) {
    for (int i = 0; i < 100; i++)
        sink += burn(rounds / 100);
    _exit(0);
}

NOINLINE __attribute__((noreturn)) void ends_in_call(uint64_t rounds) {
    never_returns(rounds + sink);
}

/* Directly behind it. */
NOINLINE void innocent(uint64_t rounds) { sink += burn(rounds); }

NOINLINE void decide(uint64_t rounds) {
    if (rounds == 1)
        innocent(rounds);
    ends_in_call(rounds);
}

int main(int argc, char **argv) {
    decide(argument(argc, argv, 1, 200) * MILLISECOND);
    return 0;
}
