/* A function that moves its stack by its argument, which no code before or after
 * reveals: only a frame pointer leads to its caller. shifted_stack MILLISECONDS */
#include "burn.h"

DEFINE_SINK;

NOINLINE void at_the_bottom(uint64_t rounds) { sink += burn(rounds); }

NOINLINE void shifted(uint64_t bytes, uint64_t rounds) {
    __asm__ volatile("sub %0, %%rsp\n\tcall at_the_bottom\n\tadd %0, %%rsp"
                     : "+b"(bytes), "+D"(rounds)
                     :
                     : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    sink += bytes;
}

int main(int argc, char **argv) {
    uint64_t rounds = argument(argc, argv, 1, 200) * MILLISECOND / 100;
    for (int i = 0; i < 100; i++)
        shifted(1600 + 16 * (uint64_t)(i % 2), rounds);
    return 0;
}
