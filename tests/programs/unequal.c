/* Allocates BYTES and waits MILLISECONDS on a stack whose callers are in no unwind table; then
 * 300 small allocations and short waits on its own: unequal BYTES MILLISECONDS */
#define _GNU_SOURCE
#include "burn.h"
#include <string.h>
#include <time.h>

DEFINE_SINK;

/* Without CFI: the stack pointer of the caller is in a register of which nothing tells. */
void on_stack(void *top, void (*function)(void));
__asm__(".text\n"
        ".type on_stack, @function\n"
        "on_stack:\n"
        "push %rbx\n"
        "push %rbp\n"
        "mov %rsp, %rbx\n"
        "mov %rdi, %rsp\n"
        "xor %ebp, %ebp\n"
        "call *%rsi\n"
        "mov %rbx, %rsp\n"
        "pop %rbp\n"
        "pop %rbx\n"
        "ret\n"
        ".size on_stack, . - on_stack\n");

static uint64_t bytes, milliseconds;
static void *volatile allocated;

NOINLINE static void pause_for(uint64_t nanoseconds) {
    struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    nanosleep(&time, NULL);
    sink++;
}

NOINLINE static void large(void) {
    allocated = malloc(bytes);
    sink++;
    pause_for(milliseconds * 1000000);
}

NOINLINE static void small(void) {
    allocated = malloc(10);
    sink++;
    pause_for(100000);
}

int main(int argc, char **argv) {
    static char stack[65536] __attribute__((aligned(16)));
    memset(stack, 0x77, sizeof stack);
    bytes = argument(argc, argv, 1, 1000000);
    milliseconds = argument(argc, argv, 2, 1000);
    on_stack(stack + 60000 / 16 * 16, large);
    for (int number = 0; number < 300; number++) small();
    return 0;
}
