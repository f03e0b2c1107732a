/* Work in a signal handler: signals normal|alternate MILLISECONDS
 * Much of it in the kernel: signals often THOUSANDS
 * Two callers in turn, whose handlers on an alternate stack show which it was:
 * signals turns MILLISECONDS */
#include "burn.h"
#include <signal.h>
#include <string.h>

DEFINE_SINK;
DEFINE_LAST_WORDS

static uint64_t rounds;

NOINLINE void in_handler(void) { sink += burn(rounds); }

NOINLINE void handler(int number) {
    (void)number;
    in_handler();
    sink++;
}

/* The signal interrupts this, below some frames. */
NOINLINE void interrupted(void) {
    raise(SIGUSR1);
    sink++;
}

NOINLINE void faulting(volatile int *nowhere) {
    *nowhere = 1;
    sink++;
}

NOINLINE void caller(void) {
    interrupted();
    sink++;
}

static void (*turn)(void);

NOINLINE void in_left(void) { sink += burn(MILLISECOND / 50); }
NOINLINE void in_right(void) { sink += burn(MILLISECOND / 50); }

NOINLINE void handler_of_turns(int number) {
    (void)number;
    turn();
    sink++;
}

NOINLINE void left(void) {
    turn = in_left;
    interrupted();
    sink++;
}

NOINLINE void right(void) {
    turn = in_right;
    interrupted();
    sink++;
}

int main(int argc, char **argv) {
    static char stack[1 << 16];
    struct sigaction action;
    rounds = argument(argc, argv, 2, 200) * MILLISECOND / 10;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    uint64_t count = 10;
    if (argc > 1 && strcmp(argv[1], "often") == 0) {
        count = argument(argc, argv, 2, 100) * 1000;
        rounds = 10;
    }
    int in_turns = argc > 1 && strcmp(argv[1], "turns") == 0;
    if (in_turns)
        action.sa_handler = handler_of_turns;
    if (in_turns || (argc > 1 && strcmp(argv[1], "alternate") == 0)) {
        stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
        sigaltstack(&alternate, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    sigaction(SIGUSR1, &action, NULL);
    for (uint64_t i = 0; in_turns && i < argument(argc, argv, 2, 500) * 25; i++) {
        left();
        right();
    }
    for (uint64_t i = 0; !in_turns && i < count; i++)
        caller();
    last_words();
    return 0;
}
