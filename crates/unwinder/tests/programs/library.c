/* Compiled twice with another frame size each time. */
#include "spin.h"
volatile unsigned long sink;
__attribute__((noinline)) void library_work(void) {
    volatile char frame[SIZE];
    for (int i = 0; i < SIZE; i++) frame[i] = 1;
    spin_leaf(400000);
    sink += frame[SIZE - 1];
}
void library_enter(void) { library_work(); sink++; }
