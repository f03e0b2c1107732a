/* An aarch64 program without libc that writes its registers (x0 to x30, sp, pc) and the bytes of
   its stack to standard output, from the bottom of a chain of calls. Run under qemu-user it makes
   the samples in tests/data; tests/aarch64.rs says how. */
#ifndef MIDDLE_ALONE
unsigned long registers[33];
unsigned long stack_top;
volatile unsigned long sink;

__asm__(".text\n"
        ".globl _start\n"
        ".type _start, %function\n"
        "_start:\n"
#ifndef LIKE_MUSL
        ".cfi_startproc\n"
        ".cfi_undefined x30\n"
#endif
        "mov x29, #0\n"
        "mov x30, #0\n"
        "adrp x9, stack_top\n"
        "mov x10, sp\n"
        "str x10, [x9, #:lo12:stack_top]\n"
#ifdef LIKE_MUSL
        "b program\n"
#else
        "bl program\n"
        "brk #0\n"
        ".cfi_endproc\n"
#endif
        ".size _start, . - _start\n"
        ".globl snapshot\n"
        ".type snapshot, %function\n"
        "snapshot:\n"
#ifndef NO_CFI
        ".cfi_startproc\n"
#endif
        "adrp x9, registers\n"
        "add x9, x9, #:lo12:registers\n"
        "stp x0, x1, [x9, #0]\n"
        "stp x2, x3, [x9, #16]\n"
        "stp x18, x19, [x9, #144]\n"
        "stp x20, x21, [x9, #160]\n"
        "stp x22, x23, [x9, #176]\n"
        "stp x24, x25, [x9, #192]\n"
        "stp x26, x27, [x9, #208]\n"
        "stp x28, x29, [x9, #224]\n"
        "mov x10, sp\n"
        "stp x30, x10, [x9, #240]\n"
        "here: adr x10, here\n"
        "str x10, [x9, #256]\n"
        "mov x0, #1\n"
        "mov x1, x9\n"
        "mov x2, #264\n"
        "mov x8, #64\n"
        "svc #0\n"
        "mov x0, #1\n"
        "mov x1, sp\n"
        "adrp x9, stack_top\n"
        "ldr x2, [x9, #:lo12:stack_top]\n"
        "sub x2, x2, x1\n"
        "svc #0\n"
        "mov x0, #0\n"
        "mov x8, #93\n"
        "svc #0\n"
        "ret\n"
#ifndef NO_CFI
        ".cfi_endproc\n"
#endif
        ".size snapshot, . - snapshot\n");
#endif
extern volatile unsigned long sink;
void snapshot(void);
unsigned long middle(unsigned long a, unsigned long b);

#ifndef WITHOUT_MIDDLE
__attribute__((noinline)) void inner(unsigned long a) {
    volatile char frame[3000];
    frame[a] = 1;
    snapshot();
    sink += frame[a];
}
__attribute__((noinline)) unsigned long middle(unsigned long a, unsigned long b) {
    unsigned long kept = sink * a;
    inner(a);
    sink += kept + b;
    return kept;
}
#endif
#ifndef MIDDLE_ALONE
__attribute__((noinline)) unsigned long descend(unsigned long depth) {
    unsigned long result = depth ? descend(depth - 1) : middle(3, 4);
    sink += result;
    return result + depth;
}
void program(void) {
    sink += descend(20);
    __builtin_trap();
}
#endif
