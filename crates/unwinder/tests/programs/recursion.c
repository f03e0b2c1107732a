/* recursion DEPTH [FOREVER]: calls itself that often, then spins. */
#include "spin.h"
volatile unsigned long sink;
static long duration = 250;
__attribute__((noinline)) int descend(int depth) {
    volatile int here = depth;
    if (depth == 0) spin(duration);
    else descend(depth - 1);
    return here;
}
int main(int count, char **arguments) {
    if (count > 2) duration = 60000;
    return descend(count > 1 ? atoi(arguments[1]) : 100) != 0;
}
