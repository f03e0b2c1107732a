/* Coroutines by makecontext and swapcontext. */
#include <ucontext.h>
#include "spin.h"
volatile unsigned long sink;
static ucontext_t main_context, contexts[2];
static char stacks[2][1 << 16];
__attribute__((noinline)) void step(void) { spin_leaf(300000); sink++; }
static void body(int self) {
    for (int i = 0; i < 200; i++) {
        step();
        swapcontext(&contexts[self], &contexts[1 - self]);
    }
    step();
}
int main(void) {
    for (int i = 0; i < 2; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = sizeof stacks[i];
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], (void (*)(void))body, 1, i);
    }
    swapcontext(&main_context, &contexts[0]);
    step();
    return 0;
}
