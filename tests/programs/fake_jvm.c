/* Poses as a JVM that never answers. The first argument is a file that it maps, as a JVM its
   library; the second says how it fails: `full` accepts nobody, `drip` answers a byte at a time,
   `signal` does so, too, and sends SIGTERM to who asks. Removes its socket when its input ends. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un address = {.sun_family = AF_UNIX};

static void *drip(void *sends_signal) {
    int listener = *(int *)sends_signal;
    for (;;) {
        int peer = accept(listener, NULL, NULL);
        struct ucred who;
        socklen_t size = sizeof who;
        if (((int *)sends_signal)[1] && !getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &size))
            kill(who.pid, SIGTERM);
        while (send(peer, "x", 1, MSG_NOSIGNAL) == 1) usleep(100000);
        close(peer);
    }
    return NULL;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    int library = open(words[1], O_RDONLY);
    if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, library, 0) == MAP_FAILED) return 3;
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/.java_pid%d", getpid());
    int listener[2] = {socket(AF_UNIX, SOCK_STREAM, 0), !strcmp(words[2], "signal")};
    if (bind(listener[0], (struct sockaddr *)&address, sizeof address)) return 4;
    listen(listener[0], 0);
    if (!strcmp(words[2], "full")) {
        int client;
        do client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        while (!connect(client, (struct sockaddr *)&address, sizeof address));
    } else {
        pthread_t thread;
        pthread_create(&thread, NULL, drip, listener);
    }
    puts("ready");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
    unlink(address.sun_path);
    return 0;
}
