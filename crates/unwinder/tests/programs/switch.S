/* Stacks to switch between, made as Boost.Context makes them: without CFI, and the first function on
 * one returns to code that follows no call and ends the process. */
    .text

/* void *new_stack(void *top, void (*first)(void)): what to switch to for it to begin. */
    .globl new_stack
    .type new_stack, @function
new_stack:
    and $-16, %rdi
    lea -72(%rdi), %rax
    mov %rsi, 32(%rax)                  /* rbx */
    lea end(%rip), %rcx
    mov %rcx, 40(%rax)                  /* rbp */
    lea begin(%rip), %rcx
    mov %rcx, 48(%rax)                  /* where the switch returns to */
    ret
    .size new_stack, . - new_stack

    .type begin, @function
begin:
    push %rbp
    jmp *%rbx
end:
    xor %edi, %edi
    call _exit@PLT
    hlt
    .size begin, . - begin

/* void switch_stack(void **from, void *to): leaves where we are in *from. */
    .globl switch_stack
    .type switch_stack, @function
switch_stack:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
    .size switch_stack, . - switch_stack

    .section .note.GNU-stack, "", @progbits
