/* Two threads that are busy until the standard input ends, one of them below DEPTH frames of its
 * stack; prints the id of the other one: endless [DEPTH] */
#define _GNU_SOURCE
#include "burn.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

DEFINE_SINK;

NOINLINE void leading(void) { sink += burn(MILLISECOND); }
NOINLINE void helping(void) { sink += burn(MILLISECOND); }

NOINLINE uint64_t descend(uint64_t depth) {
    volatile uint64_t here = depth;
    if (depth == 0)
        for (;;)
            leading();
    here += descend(depth - 1);
    return here + 1;
}

static void *wait_for_the_end(void *unused) {
    while (getchar() != EOF)
        ;
    exit(0);
    return unused;
}

static void *help(void *unused) {
    printf("%ld\n", syscall(SYS_gettid));
    fflush(stdout);
    for (;;)
        helping();
    return unused;
}

int main(int argc, char **argv) {
    pthread_t waiting, helper;
    pthread_create(&waiting, NULL, wait_for_the_end, NULL);
    pthread_create(&helper, NULL, help, NULL);
    pthread_setname_np(helper, "helper");
    sink += descend(argument(argc, argv, 1, 1));
    return 0;
}
