/* Burns CPU until the process has used the given milliseconds; `sink` prevents its removal. */
#include <stdlib.h>
#include <time.h>
extern volatile unsigned long sink;
static inline long cpu_ms(void) {
    return clock() / (CLOCKS_PER_SEC / 1000);
}
__attribute__((noinline)) static void spin_leaf(unsigned long rounds) {
    for (unsigned long i = 0; i < rounds; i++) sink += i * i;
}
__attribute__((noinline)) static void spin(long ms) {
    long end = cpu_ms() + ms;
    while (cpu_ms() < end) spin_leaf(20000);
    sink++;
}
