/* Frames below which a return address of 0 lies, rightly or not. */
    .text

/* Calls, and returns to whatever lies above. */
    .globl first
    .type first, @function
first:
    .cfi_startproc
    call wrong
    hlt
    .cfi_endproc
    .size first, . - first

/* Its CFI knows nothing of its frame. */
    .globl wrong
    .type wrong, @function
wrong:
    .cfi_startproc
    sub $40, %rsp
    nop
    add $40, %rsp
    ret
    .cfi_endproc
    .size wrong, . - wrong

/* What a signal handler returns to, as the CFI has it. */
    .globl handled
    .type handled, @function
handled:
    .cfi_startproc
    .cfi_signal_frame
    nop
    ret
    .cfi_endproc
    .size handled, . - handled

    .section .note.GNU-stack, "", @progbits
