/* Work in a signal handler: signals normal|alternate MILLISECONDS */
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

int main(int argc, char **argv) {
    static char stack[1 << 16];
    struct sigaction action;
    rounds = argument(argc, argv, 2, 200) * MILLISECOND / 10;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    if (argc > 1 && strcmp(argv[1], "alternate") == 0) {
        stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
        sigaltstack(&alternate, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 10; i++)
        caller();
    last_words();
    return 0;
}
