/* climb: goes up and down a deep stack of functions of several kinds, with ever other callers. */
#include "spin.h"
#include <alloca.h>
volatile unsigned long sink;
static unsigned state = 1;
static unsigned next(void) {
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}
static int climb(int depth);
__attribute__((noinline)) static int plain(int depth) {
    return climb(depth) + 1;
}
__attribute__((noinline)) static int saving(int depth) {
    int a = next(), b = next(), c = next();
    int below = climb(depth);
    return (a ^ b ^ c) + below;
}
__attribute__((noinline)) static int varying(int depth) {
    volatile char *room = alloca(16 + next() % 64);
    room[0] = 1;
    return climb(depth) + room[0];
}
__attribute__((noinline)) static int climb(int depth) {
    if (depth == 0) {
        spin_leaf(200000);
        return 1;
    }
    int sum = 0;
    /* Branches every so often: twelve times on the way down. */
    for (int branch = depth % 32 == 0; branch >= 0; branch--) {
        switch (next() % 3) {
        case 0: sum += plain(depth - 1); break;
        case 1: sum += saving(depth - 1); break;
        default: sum += varying(depth - 1); break;
        }
    }
    return sum;
}
int main(void) {
    return climb(400) == 0;
}
