/* Hot functions of libc, found through the PLT and IFUNCs: libc ROUNDS */
#include "burn.h"
#include <string.h>

DEFINE_SINK;

#define SIZE (1 << 16)

NOINLINE void copies(char *to, const char *from) {
    for (int i = 0; i < 400; i++) {
        memcpy(to, from, SIZE - (size_t)i);
        __asm__ volatile("" ::: "memory");
    }
}

NOINLINE void lengths(const char *text) {
    for (int i = 0; i < 400; i++)
        sink += strlen(text + i);
}

NOINLINE void allocations(void) {
    static void *pieces[256];
    for (int i = 0; i < 20000; i++) {
        free(pieces[i & 255]);
        pieces[i & 255] = malloc((size_t)(i * 37 % 3000));
    }
}

int main(int argc, char **argv) {
    static char from[SIZE], to[SIZE];
    uint64_t rounds = argument(argc, argv, 1, 200);
    memset(from, 'x', SIZE - 1);
    for (uint64_t i = 0; i < rounds; i++) {
        copies(to, from);
        lengths(from);
        allocations();
    }
    return 0;
}
