/* Deep recursion that is called through a pointer: pointer DEPTH FOREVER */
#include "spin.h"
volatile unsigned long sink;
__attribute__((noinline)) int descend(int depth) {
    volatile int here = depth;
    if (depth == 0) spin(60000);
    else descend(depth - 1);
    return here;
}
__attribute__((noinline)) int through(int (*volatile function)(int), int depth) {
    volatile int here = function(depth);
    return here + 1;
}
int main(int count, char **arguments) {
    return through(descend, count > 1 ? atoi(arguments[1]) : 100) == 0;
}
