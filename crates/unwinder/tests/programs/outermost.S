/* Frames with a return address of 0, correct or not, and one with it in a register. */
    .text

/* Calls, and returns to the address above. */
    .globl first
    .type first, @function
first:
    .cfi_startproc
    call wrong
    hlt
    .cfi_endproc
    .size first, . - first

/* Its CFI does not describe its frame, and its code does not go straight to its end. */
    .globl wrong
    .type wrong, @function
wrong:
    .cfi_startproc
    sub $40, %rsp
    je 1f
1:  add $40, %rsp
    ret
    .cfi_endproc
    .size wrong, . - wrong

/* The return address of a signal handler, by its CFI. */
    .globl handled
    .type handled, @function
handled:
    .cfi_startproc
    .cfi_signal_frame
    nop
    ret
    .cfi_endproc
    .size handled, . - handled

/* As the C library's vfork, which keeps its return address off the stack that it shares. */
    .globl in_register
    .type in_register, @function
in_register:
    .cfi_startproc
    pop %rdi
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %rdi
    nop
    push %rdi
    ret
    .cfi_endproc
    .size in_register, . - in_register

    .section .note.GNU-stack, "", @progbits
