/* A loop of many different instructions, some of them inlined, all of which take time. */
#include "burn.h"

DEFINE_SINK;

static inline __attribute__((always_inline)) uint32_t mix(uint32_t x) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x;
}

NOINLINE uint32_t divide(uint32_t rounds) {
    uint32_t x = 1, sum = 0;
    for (uint32_t i = 0; i < rounds; i++) {
        x = mix(x);
        if (x & 1)
            sum += x / (i + 1);
    }
    return sum;
}

int main(int argc, char **argv) {
    sink += divide(argument(argc, argv, 1, 200) * MILLISECOND / 10);
    return 0;
}
