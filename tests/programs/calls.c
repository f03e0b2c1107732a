/* Calls hit() so many times, and touches as many fresh pages: calls TIMES MILLISECONDS. Then it
 * works for so long. */
#define _GNU_SOURCE
#include "burn.h"
#include <stdlib.h>
#include <sys/mman.h>

DEFINE_SINK;

NOINLINE void hit(int number) { __asm__ volatile("" : : "r"(number) : "memory"); }

NOINLINE static void caller(int calls) {
    for (int call = 0; call < calls; call++) hit(call);
}

NOINLINE static void touch(int pages) {
    const int page = 4096;
    char *fresh = mmap(NULL, (size_t)pages * page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(fresh, (size_t)pages * page, MADV_NOHUGEPAGE);
    for (int number = 0; number < pages; number++) ((volatile char *)fresh)[(size_t)number * page] = 1;
}

int main(int argc, char **argv) {
    int times = (int)argument(argc, argv, 1, 1000);
    caller(times);
    touch(times);
    sink += burn(argument(argc, argv, 2, 0) * MILLISECOND);
    return 0;
}
