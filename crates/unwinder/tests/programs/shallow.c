#include "spin.h"
volatile unsigned long sink;
__attribute__((noinline)) void inner(long ms) { spin(ms); sink++; }
__attribute__((noinline)) void middle(long ms) { inner(ms); sink++; }
__attribute__((noinline)) void outer(long ms) { middle(ms); sink++; }
int main(int argc, char **argv) {
    (void)argv;
    outer(argc > 1 ? 1000000 : 250);
    return 0;
}
