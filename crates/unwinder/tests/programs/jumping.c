/* Nothing but longjmp, through some frames. */
#include <setjmp.h>
#include "spin.h"
volatile unsigned long sink;
static jmp_buf place;
__attribute__((noinline)) void jumper(int depth) {
    if (depth == 0) longjmp(place, 1);
    jumper(depth - 1);
    sink++;
}
__attribute__((noinline)) void catcher(int depth) {
    if (!setjmp(place)) jumper(depth);
    else sink++;
}
int main(void) {
    long end = cpu_ms() + 800;
    while (cpu_ms() < end)
        for (int i = 0; i < 10000; i++) catcher(i % 4);
    return 0;
}
