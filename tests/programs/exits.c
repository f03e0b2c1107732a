/* Touches memory that the kernel has to free when the process has ended: exits MEBIBYTES */
#define _GNU_SOURCE
#include "burn.h"
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    size_t size = argument(argc, argv, 1, 100) << 20;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    madvise(memory, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += 4096)
        memory[at] = 1;
    _exit(0);
}
