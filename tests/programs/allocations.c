/* Allocates known amounts of memory in all ways; a second argument multiplies them. */
#define _GNU_SOURCE
#include "burn.h"
#include <stdlib.h>
#include <sys/mman.h>

void *volatile kept;

NOINLINE void mallocs(int times) {
    for (int i = 0; i < times * 10; i++) free(kept = malloc(1000));
}
NOINLINE void callocs(int times) {
    for (int i = 0; i < times * 10; i++) free(kept = calloc(10, 70));
}
NOINLINE void reallocs(int times) {
    for (int i = 0; i < times * 5; i++) {
        kept = realloc(NULL, 100);
        free(kept = realloc(kept, 20000));
    }
}
NOINLINE void aligneds(int times) {
    for (int i = 0; i < times * 5; i++) {
        void *memory;
        if (posix_memalign(&memory, 64, 640) != 0) abort();
        free(kept = memory);
        free(kept = aligned_alloc(64, 128));
    }
}
/* So large that the allocator maps it, which must not count twice. */
NOINLINE void huges(int times) {
    for (int i = 0; i < times; i++) free(kept = malloc(64 << 20));
}
NOINLINE void maps(int times) {
    for (int i = 0; i < times * 2; i++) {
        kept = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(kept, 8192);
    }
}

int main(int argc, char **argv) {
    int times = (int)argument(argc, argv, 1, 10);
    mallocs(times);
    callocs(times);
    reallocs(times);
    aligneds(times);
    huges(times);
    maps(times);
    return 0;
}
