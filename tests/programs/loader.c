/* Opens and closes two libraries in turn: loader LIBRARY_A LIBRARY_B MILLISECONDS. The second is
 * usually mapped where the first was. */
#include "burn.h"
#include <dlfcn.h>
#include <stdio.h>

DEFINE_SINK;

NOINLINE void call(void (*entry)(uint64_t), uint64_t rounds) {
    entry(rounds);
    sink++;
}

NOINLINE int with_library(const char *path, uint64_t rounds) {
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void (*entry)(uint64_t) = (void (*)(uint64_t))dlsym(library, "entry");
    call(entry, rounds);
    return dlclose(library);
}

int main(int argc, char **argv) {
    uint64_t rounds = argument(argc, argv, 3, 200) * MILLISECOND / 20;
    for (int i = 0; i < 10; i++)
        if (with_library(argv[1], rounds) || with_library(argv[2], rounds))
            return 1;
    return 0;
}
