/* Makes a function at run time, calls it, and leaves a perf map: jit MILLISECONDS. With "wait" as
 * second argument, prints when it has run, and waits for its standard input to end; with "mapped
 * twice", the function is where .NET puts those that it compiles; with a directory, leaves a jitdump
 * there instead of the map. */
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

static void leave_map(const void *code, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    if (map == NULL)
        exit(1);
    fprintf(map, "%lx %zx function_made_at_run_time\n", (unsigned long)code, size);
    fclose(map);
}

/* Documented in the kernel's tools/perf/Documentation/jitdump-specification.txt. */
static void leave_dump(const char *directory, const void *code, size_t size) {
    static const char name[] = "function_in_a_jitdump";
    struct {
        uint32_t magic, version, header_size, machine, padding, pid;
        uint64_t time, flags;
        uint32_t kind, size;
        uint64_t loaded;
        uint32_t process, thread;
        uint64_t start, address, length, index;
    } dump = {0x4a695444, 1, 40, 62, 0, getpid(), 1, 0, 0, 56 + sizeof name + size, 1,
              getpid(), getpid(), (uint64_t)code, (uint64_t)code, size, 0};
    char path[4096];
    snprintf(path, sizeof path, "%s/jit-%d.dump", directory, getpid());
    FILE *file = fopen(path, "w+");
    if (file == NULL)
        exit(1);
    fwrite(&dump, sizeof dump, 1, file);
    fwrite(name, sizeof name, 1, file);
    fwrite(code, size, 1, file);
    fflush(file);
    /* So that profilers find it. */
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0) == MAP_FAILED)
        exit(1);
}

/* Memory for code: from .NET 7 on, it may be written elsewhere only. */
static void *code_memory(int mapped_twice) {
    int protection = PROT_READ | PROT_WRITE | PROT_EXEC, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    int file = -1;
    if (mapped_twice) {
        flags = MAP_SHARED;
        file = memfd_create("doublemapper", 0);
        if (ftruncate(file, 4096) != 0)
            exit(1);
    }
    void *memory = mmap(NULL, 4096, protection, flags, file, 0);
    if (memory == MAP_FAILED)
        exit(1);
    return memory;
}

int main(int argc, char **argv) {
    int waits = argc > 2 && strcmp(argv[2], "wait") == 0;
    int mapped_twice = argc > 2 && strcmp(argv[2], "mapped twice") == 0;
    /* push rbp; mov rbp, rsp; mov rax, 3; again: imul rax, rax; dec rdi; jnz again; pop rbp; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xc7, 0xc0, 3,    0,    0, 0,
                                         0x48, 0x0f, 0xaf, 0xc0, 0x48, 0xff, 0xcf, 0x75, 0xf7,
                                         0x5d, 0xc3};
    void *memory = code_memory(mapped_twice);
    memcpy(memory, code, sizeof code);
    if (argc > 2 && !waits && !mapped_twice)
        leave_dump(argv[2], memory, sizeof code);
    else
        leave_map(memory, sizeof code);
    calls_generated_code(memory, argument(argc, argv, 1, 300) * MILLISECOND);
    if (waits) {
        puts("ran");
        fflush(stdout);
        while (getchar() != EOF)
            ;
    }
    return 0;
}
