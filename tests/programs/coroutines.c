/* Two coroutines on stacks of their own that switch to each other. */
#include "burn.h"
#include <ucontext.h>

DEFINE_SINK;

static ucontext_t outside, first, second;
static uint64_t rounds;

NOINLINE void in_first(void) { sink += burn(rounds); }
NOINLINE void in_second(void) { sink += burn(rounds); }

static void first_entry(void) {
    for (int i = 0; i < 10; i++) {
        in_first();
        swapcontext(&first, &second);
    }
}

static void second_entry(void) {
    for (int i = 0; i < 10; i++) {
        in_second();
        swapcontext(&second, i == 9 ? &outside : &first);
    }
}

static void prepare(ucontext_t *context, char *stack, size_t size, void (*entry)(void)) {
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = size;
    context->uc_link = &outside;
    makecontext(context, entry, 0);
}

int main(int argc, char **argv) {
    static char stacks[2][1 << 16];
    rounds = argument(argc, argv, 1, 200) * MILLISECOND / 20;
    prepare(&first, stacks[0], sizeof stacks[0], first_entry);
    prepare(&second, stacks[1], sizeof stacks[1], second_entry);
    swapcontext(&outside, &first);
    return 0;
}
