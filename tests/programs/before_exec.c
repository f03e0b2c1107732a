/* Children that work, and then execute a short program: before_exec CHILDREN MILLISECONDS PROGRAM */
#include "burn.h"
#include <sys/wait.h>
#include <unistd.h>

DEFINE_SINK;

NOINLINE void work(uint64_t n) { sink += burn(n); }

int main(int argc, char **argv) {
    uint64_t children = argument(argc, argv, 1, 100);
    uint64_t n = argument(argc, argv, 2, 5) * MILLISECOND;
    for (uint64_t i = 0; i < children; i++) {
        if (fork() == 0) {
            work(n);
            execl(argv[3], argv[3], (char *)NULL);
            _exit(1);
        }
        wait(NULL);
    }
    return 0;
}
