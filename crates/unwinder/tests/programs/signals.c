/* signals normal|alternate [FOREVER]: spins in a signal handler, on its stack or one of its own. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "spin.h"
volatile unsigned long sink;
static long duration = 300;
__attribute__((noinline)) void in_handler(void) { spin(duration); sink++; }
static void handler(int number) { (void)number; in_handler(); sink++; }
__attribute__((noinline)) void raiser(void) { raise(SIGUSR1); sink++; }
__attribute__((noinline)) void crasher(void) { *(volatile int *)8 = 1; sink++; }
static void on_fault(int number) { (void)number; in_handler(); _exit(0); }
int main(int count, char **arguments) {
    struct sigaction action = {.sa_handler = handler};
    static char bytes[1 << 16];
    stack_t stack = {.ss_sp = bytes, .ss_size = sizeof bytes};
    if (count > 1 && !strcmp(arguments[1], "alternate")) {
        action.sa_flags = SA_ONSTACK;
        sigaltstack(&stack, NULL);
    }
    if (count > 2) duration = 60000;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = on_fault;
    sigaction(SIGSEGV, &action, NULL);
    raiser();
    crasher();
    return 0;
}
