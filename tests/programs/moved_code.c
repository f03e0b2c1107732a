/* Moves code that was made at run time, which profilers are not told, and calls the kernel from it:
 * moved_code READS */
#define _GNU_SOURCE
#include "burn.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

DEFINE_SINK;

NOINLINE void calls_moved_code(long (*reads)(int, void *, long), int file, void *buffer) {
    sink += reads(file, buffer, 8 << 20);
}

int main(int argc, char **argv) {
    /* push rbp; mov rbp, rsp; xor eax, eax; syscall; pop rbp; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0x0f, 0x05, 0x5d, 0xc3};
    void *buffer = malloc(8 << 20);
    int file = open("/dev/zero", O_RDONLY);
    char *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *gap = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == NULL || file < 0 || made == MAP_FAILED || gap == MAP_FAILED)
        return 1;
    memcpy(made, code, sizeof code);
    mprotect(made, 4096, PROT_READ | PROT_EXEC);
    void *moved = mremap(made, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, gap + 4096);
    if (moved == MAP_FAILED)
        return 1;
    for (uint64_t i = 0; i < argument(argc, argv, 1, 500); i++)
        calls_moved_code(moved, file, buffer);
    return 0;
}
