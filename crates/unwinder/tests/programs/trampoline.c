/* Calls through CPython's trampolines, the one of 3.12 and the one that links frames, in each level:
 * trampoline DEPTH FOREVER */
#include <string.h>
#include <sys/mman.h>
#include "spin.h"
volatile unsigned long sink;
/* endbr64; sub $8,%rsp; call *%rcx; add $8,%rsp; ret */
static const unsigned char padded[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08,
    0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3};
/* push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret */
static const unsigned char linked[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};
typedef int function(int, int, int, void *);
static function *trampolines[2];
__attribute__((noinline)) int evaluate(int depth, int a, int b, void *self) {
    volatile int here = depth;
    if (depth == 0) spin(60000);
    else here += trampolines[depth & 1](depth - 1, a, b, self);
    return here;
}
int main(int count, char **arguments) {
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, padded, sizeof padded);
    memcpy(page + 64, linked, sizeof linked);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    trampolines[0] = (function *)page;
    trampolines[1] = (function *)(page + 64);
    return evaluate(count > 1 ? atoi(arguments[1]) : 10, 0, 0, (void *)evaluate) != 0;
}
