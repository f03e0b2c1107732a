# Handwritten functions: with CFI and without, with and without pushed registers and frame pointers.
# Each takes a number of rounds in %rdi and a function to call in %rsi, unless it is a leaf.
        .text

        .macro burn
1:      imul    $0x5851f42d, %rax, %rax
        add     $1, %rax
        dec     %rdi
        jnz     1b
        .endm

# A leaf that pushes nothing: the return address lies at the stack pointer.
        .globl  asm_leaf
        .type   asm_leaf, @function
asm_leaf:
        .cfi_startproc
        mov     %rdi, %rax
        burn
        ret
        .cfi_endproc
        .size   asm_leaf, . - asm_leaf

# A leaf that moves the stack pointer within its loop.
        .globl  asm_pushes
        .type   asm_pushes, @function
asm_pushes:
        .cfi_startproc
        mov     %rdi, %rax
1:      push    %rax
        .cfi_adjust_cfa_offset 8
        imul    $0x5851f42d, %rax, %rax
        push    %rdi
        .cfi_adjust_cfa_offset 8
        add     $1, %rax
        pop     %rdi
        .cfi_adjust_cfa_offset -8
        imul    $0x5851f42d, %rax, %rax
        pop     %rcx
        .cfi_adjust_cfa_offset -8
        dec     %rdi
        jnz     1b
        ret
        .cfi_endproc
        .size   asm_pushes, . - asm_pushes

# Calls on, with CFI.
        .globl  asm_calls
        .type   asm_calls, @function
asm_calls:
        .cfi_startproc
        push    %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbx, -16
        sub     $48, %rsp
        .cfi_adjust_cfa_offset 48
        call    *%rsi
        add     $48, %rsp
        .cfi_adjust_cfa_offset -48
        pop     %rbx
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   asm_calls, . - asm_calls

# A leaf without CFI and without a frame.
        .globl  bare_leaf
        .type   bare_leaf, @function
bare_leaf:
        mov     %rdi, %rax
        burn
        ret
        .size   bare_leaf, . - bare_leaf

# Without CFI, with a frame pointer, calling on.
        .globl  bare_framed
        .type   bare_framed, @function
bare_framed:
        push    %rbp
        mov     %rsp, %rbp
        sub     $32, %rsp
        call    *%rsi
        leave
        ret
        .size   bare_framed, . - bare_framed

# Without CFI, without a frame pointer, calling on: only the code shows where the caller is.
        .globl  bare_calls
        .type   bare_calls, @function
bare_calls:
        push    %rbx
        sub     $32, %rsp
        call    *%rsi
        add     $32, %rsp
        pop     %rbx
        ret
        .size   bare_calls, . - bare_calls

        .section .note.GNU-stack, "", @progbits
