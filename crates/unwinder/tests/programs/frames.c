/* Frames of unusual shape: VLA, alloca, over-aligned, large, no return. */
#include <alloca.h>
#include <string.h>
#include "spin.h"
volatile unsigned long sink;
__attribute__((noinline)) void touch(char *bytes, long count) {
    for (int k = 0; k < 100; k++)
        for (long i = 0; i < count; i += 64) { bytes[i]++; sink++; }
}
__attribute__((noinline)) void vla(int count) { char bytes[count]; touch(bytes, count); sink++; }
__attribute__((noinline)) void with_alloca(int count) { touch(alloca(count), count); sink++; }
__attribute__((noinline)) void aligned(int count) {
    char bytes[512] __attribute__((aligned(128)));
    touch(bytes, 512);
    sink += count;
}
__attribute__((noinline)) void aligned_vla(int count) {
    char fixed[256] __attribute__((aligned(64)));
    char bytes[count];
    touch(fixed, 256);
    touch(bytes, count);
    sink++;
}
__attribute__((noinline)) void large(int count) {
    char bytes[20000];
    touch(bytes, count);
    sink++;
}
__attribute__((noinline, noreturn)) void finish(int code) { spin(150); exit(code); }
__attribute__((noinline, noreturn)) void last(int code) { sink++; finish(code); }
int main(int count, char **arguments) {
    (void)arguments;
    long end = cpu_ms() + 400;
    while (cpu_ms() < end) {
        vla(count * 700);
        with_alloca(count * 900);
        aligned(count);
        aligned_vla(count * 300);
        large(count * 15000);
    }
    last(0);
}
