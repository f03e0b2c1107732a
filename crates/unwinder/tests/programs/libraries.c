/* libraries ONE TWO: opens and closes two libraries in turns, at the same address. */
#include <dlfcn.h>
#include "spin.h"
volatile unsigned long sink;
int main(int count, char **arguments) {
    if (count < 3) return 1;
    for (int i = 0; i < 150; i++) {
        void *library = dlopen(arguments[1 + (i & 1)], RTLD_NOW);
        void (*enter)(void) = (void (*)(void))dlsym(library, "library_enter");
        enter();
        dlclose(library);
    }
    return 0;
}
