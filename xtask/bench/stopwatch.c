/* stopwatch FILE COMMAND...: runs the command and writes to FILE the usage of it and all its
 * awaited children: wall nanoseconds, CPU microseconds, peak memory of the largest process in KiB, context
 * switches; and the peak memory of the command itself in KiB, as it was up to half a second before
 * its end. */
#define _GNU_SOURCE
#include <signal.h>
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

/* The peak of a process so far, in KiB; `known` if it has ended. */
static long peak(pid_t pid, long known) {
    char line[256];
    snprintf(line, sizeof line, "/proc/%d/status", (int)pid);
    FILE *status = fopen(line, "r");
    if (status == NULL)
        return known;
    while (fgets(line, sizeof line, status) != NULL)
        sscanf(line, "VmHWM: %ld", &known);
    fclose(status);
    return known;
}

int main(int argc, char **argv) {
    struct timespec glance = {.tv_nsec = 500000000};
    struct rusage used;
    sigset_t ends;
    int status;
    long own = 0;
    if (argc < 3)
        return 2;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    long long start = now();
    pid_t child = fork();
    if (child == 0) {
        sigprocmask(SIG_UNBLOCK, &ends, NULL);
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    if (child < 0)
        return 2;
    while (sigtimedwait(&ends, NULL, &glance) != SIGCHLD)
        own = peak(child, own);
    if (wait4(child, &status, 0, &used) != child)
        return 2;
    long long end = now();
    FILE *file = fopen(argv[1], "w");
    if (file == NULL)
        return 2;
    fprintf(file, "%lld %lld %ld %ld %ld\n", end - start,
            microseconds(used.ru_utime) + microseconds(used.ru_stime), used.ru_maxrss,
            used.ru_nvcsw + used.ru_nivcsw, own);
    fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
