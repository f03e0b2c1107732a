/* A timer's handler on a signal stack of its own, 0.1 ms long, each millisecond: timer MILLISECONDS */
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "burn.h"

DEFINE_SINK;

NOINLINE void in_handler(void) { sink += burn(MILLISECOND / 10); }

NOINLINE void handler(int number) {
    (void)number;
    in_handler();
    sink++;
}

NOINLINE void work(uint64_t rounds) { sink += burn(rounds); }

int main(int argc, char **argv) {
    static char stack[1 << 16];
    uint64_t milliseconds = argument(argc, argv, 1, 200);
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval each_millisecond = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &each_millisecond, NULL);
    for (uint64_t i = 0; i < milliseconds; i++)
        work(MILLISECOND);
    return 0;
}
