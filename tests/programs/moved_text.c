/* Runs its own code from anonymous memory, as programs do that copy it to huge pages:
 * moved_text copy|mremap [wait] */
#define _GNU_SOURCE
#include "burn.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* On pages of their own, however large those are. */
#define MOVED NOINLINE __attribute__((section("moved"), aligned(65536)))

DEFINE_SINK;

extern char __start_moved[], __stop_moved[];

MOVED void hot(void) {
    sink += burn(MILLISECOND);
}

MOVED void outer(void) {
    hot();
    sink++;
}

int main(int argc, char **argv) {
    const int access = PROT_READ | PROT_WRITE | PROT_EXEC;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = ((size_t)(__stop_moved - __start_moved) + page - 1) / page * page;
    char *copy = mmap(NULL, size, access, flags, -1, 0);
    if (argc < 2 || copy == MAP_FAILED)
        return 1;
    memcpy(copy, __start_moved, size);
    char *moved = __start_moved;
    if (strcmp(argv[1], "copy") == 0) {
        moved = mmap(moved, size, access, flags | MAP_FIXED, -1, 0);
        memcpy(moved, copy, size);
    } else
        moved = mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, moved);
    if (moved != __start_moved)
        return 1;
    __builtin___clear_cache(moved, moved + size);
    if (argc > 2) {
        puts("ready");
        fflush(stdout);
        getchar();
    }
    for (int i = 0; i < 300; i++)
        outer();
    return 0;
}
