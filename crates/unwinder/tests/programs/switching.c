/* Nothing but swapcontext, between coroutines that end by uc_link. */
#include <ucontext.h>
#include "spin.h"
volatile unsigned long sink;
static ucontext_t main_context, context;
static char stack[1 << 16];
__attribute__((noinline)) void step(void) {
    swapcontext(&context, &main_context);
    sink++;
}
static void body(void) {
    step();
    step();
}
__attribute__((noinline)) void resume(void) {
    swapcontext(&main_context, &context);
    sink++;
}
__attribute__((noinline)) void coroutine(void) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = sizeof stack;
    context.uc_link = &main_context;
    makecontext(&context, body, 0);
    for (int i = 0; i < 3; i++) resume();
}
int main(void) {
    long end = cpu_ms() + 800;
    while (cpu_ms() < end)
        for (int i = 0; i < 1000; i++) coroutine();
    return 0;
}
