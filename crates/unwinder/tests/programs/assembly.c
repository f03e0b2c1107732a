#include "spin.h"
volatile unsigned long sink;
void asm_leaf(void), asm_leaf_cfi(void), asm_push(void), asm_push_cfi(void), asm_realign(void),
    asm_frame(void), asm_calls(int (*)(void));
__attribute__((noinline)) int callback(void) { spin_leaf(300000); return (int)sink & 1; }
__attribute__((noinline)) void all(void) {
    asm_leaf(); asm_leaf_cfi(); asm_push(); asm_push_cfi(); asm_realign(); asm_frame();
    asm_calls(callback);
    sink++;
}
int main(void) {
    long end = cpu_ms() + 600;
    while (cpu_ms() < end) all();
    return 0;
}
