/* JIT code, with a frame pointer and without any unwind information. */
#include <string.h>
#include <sys/mman.h>
#include "spin.h"
volatile unsigned long sink;
__attribute__((noinline)) void from_jit(void) { spin_leaf(100000); sink++; }
/* push %rbp; mov %rsp,%rbp; push %rbx; push %rbx; mov $300000,%ebx; 1: dec %ebx; jnz 1b;
   call *%rdi; lea -8(%rbp),%rsp; pop %rbx; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x53, 0x53, 0xbb, 0xe0, 0x93, 0x04,
    0x00, 0xff, 0xcb, 0x75, 0xfc, 0xff, 0xd7, 0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3};
int main(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    long end = cpu_ms() + 500;
    while (cpu_ms() < end) ((void (*)(void (*)(void)))page)(from_jit);
    return 0;
}
