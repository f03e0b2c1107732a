# Handwritten functions. They have CFI if their names say so.
    .text
    .macro spin_loop
    mov $300000, %rax
1:  dec %rax
    jnz 1b
    .endm

    .globl asm_leaf
    .type asm_leaf, @function
asm_leaf:
    spin_loop
    ret

    .globl asm_leaf_cfi
    .type asm_leaf_cfi, @function
asm_leaf_cfi:
    .cfi_startproc
    spin_loop
    ret
    .cfi_endproc

    .globl asm_push
    .type asm_push, @function
asm_push:
    push %rbx
    push %rbp
    push %r12
    sub $40, %rsp
    mov $1, %ebx
    xor %ebp, %ebp
    spin_loop
    add $40, %rsp
    pop %r12
    pop %rbp
    pop %rbx
    ret

    .globl asm_push_cfi
    .type asm_push_cfi, @function
asm_push_cfi:
    .cfi_startproc
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    mov $1, %ebx
    xor %ebp, %ebp
    spin_loop
    pop %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    ret
    .cfi_endproc

# Saves the stack pointer in another register, as OpenSSL does.
    .globl asm_realign
    .type asm_realign, @function
asm_realign:
    mov %rsp, %r11
    push %rbx
    push %r12
    lea -128(%rsp), %rsp
    and $-64, %rsp
    mov %r11, 96(%rsp)
    spin_loop
    mov 96(%rsp), %r11
    mov -8(%r11), %rbx
    mov -16(%r11), %r12
    mov %r11, %rsp
    ret

    .globl asm_frame
    .type asm_frame, @function
asm_frame:
    push %rbp
    mov %rsp, %rbp
    sub $64, %rsp
    spin_loop
    call asm_leaf
    leave
    ret

# Calls back into C: (function)
    .globl asm_calls
    .type asm_calls, @function
asm_calls:
    push %rbx
    push %r13
    sub $24, %rsp
    mov %rdi, %rbx
    xor %r13d, %r13d
    call *%rbx
    cmp $1, %eax
    je 2f
    spin_loop
2:  add $24, %rsp
    pop %r13
    pop %rbx
    ret
    .section .note.GNU-stack,"",@progbits
