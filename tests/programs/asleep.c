/* Says `ready` when all its threads sleep: one waits for input, two for a lock that it holds. */
#define _GNU_SOURCE
#include "burn.h"
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

DEFINE_SINK;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int numbers[2];

NOINLINE static void *waits_for_the_lock(void *number) {
    *(volatile int *)number = (int)syscall(SYS_gettid);
    pthread_mutex_lock(&lock);
    sink++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

NOINLINE void waits_for_input(void) {
    char byte;
    while (read(0, &byte, 1) > 0) sink++;
}

/* Whether the kernel shows a thread of ours as sleeping. */
static int sleeps(int thread) {
    if (thread == 0) return 0;
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *stat = fopen(path, "r");
    if (!stat || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1) state = 0;
    if (stat) fclose(stat);
    return state == 'S';
}

int main(void) {
    pthread_t threads[2];
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, waits_for_the_lock, (void *)&numbers[i]);
        while (!sleeps(numbers[i])) usleep(100);
    }
    puts("ready");
    fflush(stdout);
    waits_for_input();
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
