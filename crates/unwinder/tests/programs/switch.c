/* A coroutine on a stack of its own, by switch.S. */
#include "spin.h"
volatile unsigned long sink;
void *new_stack(void *top, void (*first)(void));
void switch_stack(void **from, void *to);
static void *outside, *inside;
static char stack[1 << 16];
__attribute__((noinline)) void step(void) { spin_leaf(300000); sink++; }
__attribute__((noinline)) static void body(void) {
    for (int i = 0; i < 300; i++) {
        step();
        switch_stack(&inside, outside);
    }
}
int main(void) {
    inside = new_stack(stack + sizeof stack, body);
    for (int i = 0; i < 300; i++)
        switch_stack(&outside, inside);
    return 0;
}
