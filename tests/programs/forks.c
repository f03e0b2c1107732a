/* Forked children that never exec: forks MILLISECONDS */
#include "burn.h"
#include <sys/wait.h>
#include <unistd.h>

DEFINE_SINK;

NOINLINE void in_child(uint64_t n) { sink += burn(n); }
NOINLINE void in_grandchild(uint64_t n) { sink += burn(n); }
NOINLINE void in_parent(uint64_t n) { sink += burn(n); }

NOINLINE void grandchild(uint64_t n) {
    in_grandchild(n);
    sink++;
}

NOINLINE void child(uint64_t n) {
    if (fork() == 0) {
        grandchild(n);
        _exit(0);
    }
    in_child(n);
    wait(NULL);
}

int main(int argc, char **argv) {
    uint64_t n = argument(argc, argv, 1, 300) * MILLISECOND;
    if (fork() == 0) {
        child(n);
        _exit(0);
    }
    in_parent(n);
    wait(NULL);
    return 0;
}
