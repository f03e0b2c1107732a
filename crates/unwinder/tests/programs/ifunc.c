#include "spin.h"
volatile unsigned long sink;
static int fast(int x) { spin_leaf(20000); return x + 1; }
static int (*resolve(void))(int) { return fast; }
int chosen(int) __attribute__((ifunc("resolve")));
int main(void) {
    int x = 0;
    long end = cpu_ms() + 250;
    while (cpu_ms() < end) x = chosen(x);
    return x == 1;
}
