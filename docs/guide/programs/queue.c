// Two threads take turns at a lock that one of them holds while it sleeps.
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *slow_writer(void *arg) {
    for (int i = 0; i < 25; i++) {
        pthread_mutex_lock(&lock);
        usleep(20000);
        pthread_mutex_unlock(&lock);
        usleep(1000);
    }
    return arg;
}

static void *reader(void *arg) {
    for (int i = 0; i < 25; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        usleep(1000);
    }
    return arg;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, slow_writer, NULL);
    pthread_create(&threads[1], NULL, reader, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}
