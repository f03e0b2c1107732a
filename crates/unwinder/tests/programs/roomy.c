/* Recursion through large frames that are never written to: roomy DEPTH */
#include <stdlib.h>

static volatile unsigned long sink;

static __attribute__((noinline, noclone)) void roomy(long depth) {
    volatile char room[4096];
    room[0] = 1;
    if (depth > 0)
        roomy(depth - 1);
    else
        for (;;)
            sink++;
    sink += (unsigned long)room[0];
}

int main(int argc, char **argv) {
    roomy(argc > 1 ? atol(argv[1]) : 20);
    return 0;
}
