#include "spin.h"
volatile unsigned long sink;
__attribute__((noinline)) void ask(void) {
    struct timespec now;
    for (int i = 0; i < 100000; i++) { clock_gettime(CLOCK_MONOTONIC, &now); sink += now.tv_nsec; }
}
int main(void) {
    for (int i = 0; i < 80; i++) ask();
    return 0;
}
