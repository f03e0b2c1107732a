// Counts words by looking each one up in a list, which is the slow part.
#include <stdio.h>
#include <string.h>

static const char *known[400];
static char names[400][8];

__attribute__((noinline)) static int find(const char *word) {
    for (int i = 0; i < 400; i++)
        if (strcmp(known[i], word) == 0)
            return i;
    return -1;
}

__attribute__((noinline)) static long count(int rounds) {
    long sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += find(names[i % 400]);
    return sum;
}

int main(void) {
    for (int i = 0; i < 400; i++) {
        snprintf(names[i], sizeof names[i], "w%d", i);
        known[i] = names[i];
    }
    printf("%ld\n", count(400000));
}
