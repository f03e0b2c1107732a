/* Two processes that wake each other in turn, through a pair of pipes: pingpong TURNS */
#include "burn.h"

#include <sys/wait.h>
#include <unistd.h>

DEFINE_SINK;

int main(int argc, char **argv) {
    uint64_t turns = argument(argc, argv, 1, 10000);
    int there[2], back[2];
    char ball = 0;
    if (pipe(there) || pipe(back))
        return 1;
    if (fork() == 0) {
        for (uint64_t i = 0; i < turns; i++)
            if (read(there[0], &ball, 1) != 1 || write(back[1], &ball, 1) != 1)
                return 1;
        return 0;
    }
    for (uint64_t i = 0; i < turns; i++)
        if (write(there[1], &ball, 1) != 1 || read(back[0], &ball, 1) != 1)
            return 1;
    sink += burn(100 * MILLISECOND);
    return wait(NULL) < 0;
}
