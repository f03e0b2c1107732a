/* Threads of some milliseconds each, one after the other. */
#include <pthread.h>
#include "spin.h"
volatile unsigned long sink;
__attribute__((noinline)) void work(void) { spin_leaf(2000000); sink++; }
static void *run(void *argument) { work(); return argument; }
int main(void) {
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, run, NULL);
        pthread_join(thread, NULL);
    }
    return 0;
}
