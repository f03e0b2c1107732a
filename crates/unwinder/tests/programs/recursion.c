/* recursion DEPTH: calls itself that often, then spins. */
#include "spin.h"
volatile unsigned long sink;
__attribute__((noinline)) int descend(int depth) {
    volatile int here = depth;
    if (depth == 0) spin(250);
    else descend(depth - 1);
    return here;
}
int main(int count, char **arguments) {
    return descend(count > 1 ? atoi(arguments[1]) : 100) != 0;
}
