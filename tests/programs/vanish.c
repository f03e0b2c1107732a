/* Runs as a program that has no path: vanish unlink|memfd MILLISECONDS. */
#define _GNU_SOURCE
#include "burn.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

DEFINE_SINK;

NOINLINE void inner_of_the_vanished(uint64_t rounds) { sink += burn(rounds); }

NOINLINE void outer_of_the_vanished(uint64_t rounds) {
    inner_of_the_vanished(rounds);
    sink++;
}

static int run_from_memory(char **argv) {
    struct stat self;
    int file = open("/proc/self/exe", O_RDONLY);
    int memory = memfd_create("vanished", MFD_CLOEXEC);
    if (fstat(file, &self) || sendfile(memory, file, NULL, self.st_size) != self.st_size)
        return 1;
    char *arguments[] = {argv[0], "run", argv[2], NULL};
    fexecve(memory, arguments, environ);
    perror("fexecve");
    return 1;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "memfd") == 0)
        return run_from_memory(argv);
    if (strcmp(how, "unlink") == 0 && unlink(argv[0]))
        return 1;
    outer_of_the_vanished(argument(argc, argv, 2, 300) * MILLISECOND);
    return 0;
}
