/* stopwatch FILE COMMAND...: runs the command and writes to FILE what it and all that it waited
 * for took: wall nanoseconds, CPU microseconds, peak memory of the largest process in KiB. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long long microseconds(struct timeval time) {
    return time.tv_sec * 1000000LL + time.tv_usec;
}

int main(int argc, char **argv) {
    struct rusage used;
    int status;
    if (argc < 3)
        return 2;
    long long start = now();
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child)
        return 2;
    long long end = now();
    FILE *file = fopen(argv[1], "w");
    if (file == NULL)
        return 2;
    fprintf(file, "%lld %lld %ld\n", end - start,
            microseconds(used.ru_utime) + microseconds(used.ru_stime), used.ru_maxrss);
    fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
