#include "spin.h"
volatile unsigned long sink;
__attribute__((noinline)) void inner(void) { spin(250); sink++; }
__attribute__((noinline)) void middle(void) { inner(); sink++; }
__attribute__((noinline)) void outer(void) { middle(); sink++; }
int main(void) { outer(); return 0; }
