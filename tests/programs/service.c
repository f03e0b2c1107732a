/* A long-running program: threads that work and rest, processes that come and go, libraries that are
 * loaded and unloaded, until killed: service LIBRARY... */
#include "burn.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

DEFINE_SINK;

enum { WORKERS = 8, ROUND_MS = 50 };

static void rest(long milliseconds) {
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
}

/* Stacks of all depths, so that some are deeper than the kernel's dumps. */
NOINLINE void handle(unsigned depth) {
    volatile char local[256];
    local[depth % sizeof local] = 1;
    if (depth > 0)
        handle(depth - 1);
    else
        sink += burn(2 * MILLISECOND);
    sink += local[0];
}

static void *worker(void *number) {
    for (unsigned round = (unsigned)(uintptr_t)number;; round++) {
        handle(round % 300);
        rest(ROUND_MS);
    }
    return NULL;
}

static void *short_one(void *unused) {
    handle(3);
    return unused;
}

static void call(const char *library) {
    void *handle = dlopen(library, RTLD_NOW);
    void (*function)(uint64_t) = NULL;
    if (handle)
        *(void **)&function = dlsym(handle, "in_plugin");
    if (!function)
        abort();
    function(MILLISECOND);
    dlclose(handle);
}

int main(int argc, char **argv) {
    pthread_t thread;
    for (uintptr_t i = 0; i < WORKERS; i++)
        if (pthread_create(&thread, NULL, worker, (void *)i) != 0)
            abort();
    for (int round = 0;; round++) {
        if (pthread_create(&thread, NULL, short_one, NULL) != 0)
            abort();
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        if (argc > 1)
            call(argv[1 + round % (argc - 1)]);
        waitpid(child, NULL, 0);
        pthread_join(thread, NULL);
        rest(ROUND_MS);
    }
}
