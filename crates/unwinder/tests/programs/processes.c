/* fork without exec, and exec of itself. */
#include <sys/wait.h>
#include <unistd.h>
#include "spin.h"
volatile unsigned long sink;
__attribute__((noinline)) void child(void) { spin(3); sink++; }
int main(int count, char **arguments) {
    if (count > 1) { child(); return 0; }
    for (int i = 0; i < 60; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (i & 1) { child(); _exit(0); }
            execl(arguments[0], arguments[0], "again", NULL);
        }
        waitpid(pid, NULL, 0);
    }
    return 0;
}
