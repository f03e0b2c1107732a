/* storm fork COUNT        that many processes, eight at a time
 * storm thread COUNT      that many threads, eight at a time
 * storm map COUNT DIR     maps the code of that many files, then works
 * storm dlopen COUNT LIB  loads, calls and unloads a library that often */
#include "burn.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

DEFINE_SINK;

enum { AT_ONCE = 8 };

NOINLINE void work(void) { sink += burn(MILLISECOND / 20); }

static void *in_thread(void *unused) {
    work();
    return unused;
}

static void forks(uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (i >= AT_ONCE)
            wait(NULL);
        if (fork() == 0) {
            work();
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
}

static void threads(uint64_t count) {
    pthread_t running[AT_ONCE];
    for (uint64_t i = 0; i < count + AT_ONCE; i++) {
        if (i >= AT_ONCE)
            pthread_join(running[i % AT_ONCE], NULL);
        if (i < count && pthread_create(&running[i % AT_ONCE], NULL, in_thread, NULL) != 0)
            abort();
    }
}

static void maps(uint64_t count, const char *folder) {
    char path[4096];
    for (uint64_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/mapped%05d", folder, (int)i);
        int file = open(path, O_RDWR | O_CREAT, 0600);
        if (file < 0 || ftruncate(file, 4096) != 0)
            abort();
        if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
            abort();
        close(file);
    }
    for (int i = 0; i < 2000; i++)
        work();
}

static void loads(uint64_t count, const char *library) {
    for (uint64_t i = 0; i < count; i++) {
        void *handle = dlopen(library, RTLD_NOW);
        void (*function)(uint64_t) = NULL;
        if (handle)
            *(void **)&function = dlsym(handle, "in_plugin");
        if (!function)
            abort();
        function(MILLISECOND / 4);
        dlclose(handle);
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const char *where = argc > 3 ? argv[3] : ".";
    uint64_t count = argument(argc, argv, 2, 100);
    if (strcmp(what, "fork") == 0)
        forks(count);
    else if (strcmp(what, "thread") == 0)
        threads(count);
    else if (strcmp(what, "map") == 0)
        maps(count, where);
    else if (strcmp(what, "dlopen") == 0)
        loads(count, where);
    else
        return 2;
    return 0;
}
