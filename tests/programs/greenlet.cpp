// Starts a function on a stack of its own as the module greenlet does: in the middle of a function,
// whose CFI then leads to what is above.

#include "burn.h"

DEFINE_SINK;

struct UserGreenlet {
    __attribute__((noinline)) static void inner_bootstrap();
    __attribute__((noinline)) static void g_initialstub();
};

static unsigned long other_stack[1 << 15];

extern "C" __attribute__((noinline)) void works_in_the_greenlet()
{
    sink += burn(500 * MILLISECOND);
}

void UserGreenlet::inner_bootstrap()
{
    works_in_the_greenlet();
    exit(0);
}

void UserGreenlet::g_initialstub()
{
    // Above its first frame, there is what no caller has left.
    for (auto &word : other_stack)
        word = 0x1234;
    __asm__ volatile("mov %0, %%rsp" ::"r"(other_stack + (1 << 14)) : "memory");
    inner_bootstrap();
}

int main()
{
    UserGreenlet::g_initialstub();
}
