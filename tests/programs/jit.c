/* Makes a function at run time, calls it, and leaves a perf map: jit MILLISECONDS. With a second
 * argument, says when it has run and waits for its standard input to end. */
#define _GNU_SOURCE
#include "burn.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

DEFINE_SINK;

NOINLINE void calls_generated_code(void (*generated)(uint64_t), uint64_t rounds) {
    generated(rounds);
    sink++;
}

int main(int argc, char **argv) {
    /* push rbp; mov rbp, rsp; mov rax, 3; again: imul rax, rax; dec rdi; jnz again; pop rbp; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xc7, 0xc0, 3,    0,    0, 0,
                                         0x48, 0x0f, 0xaf, 0xc0, 0x48, 0xff, 0xcf, 0x75, 0xf7,
                                         0x5d, 0xc3};
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    memcpy(memory, code, sizeof code);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    if (map == NULL)
        return 1;
    fprintf(map, "%lx %zx function_made_at_run_time\n", (unsigned long)memory, sizeof code);
    fclose(map);
    calls_generated_code(memory, argument(argc, argv, 1, 300) * MILLISECOND);
    if (argc > 2) {
        puts("ran");
        fflush(stdout);
        while (getchar() != EOF)
            ;
    }
    return 0;
}
