/* Functions for probes of other tools: `probed` for a return probe, and `tiny` for an entry probe:
   the kernel does not emulate its first instruction, but runs a copy of it. */
#include <string.h>

static volatile unsigned sink;

__attribute__((noinline)) static void work(void) {
    for (int i = 0; i < 5000000; i++)
        sink += i;
}

__attribute__((noinline)) void probed(void) {
    work();
    sink++;
}

__attribute__((noinline)) unsigned tiny(unsigned a, unsigned b) {
    return a * 31 + b;
}

__attribute__((noinline)) static void call_tiny(void) {
    for (int i = 0; i < 200000; i++)
        sink = tiny(sink, i);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "tiny") == 0)
        call_tiny();
    else
        for (int i = 0; i < 60; i++)
            probed();
    return 0;
}
