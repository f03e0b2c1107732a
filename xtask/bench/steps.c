// Work of the C library in separate functions, for `cargo xtask ci-trial`: MORE is the number of
// extra rounds of one of them.
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[1 << 16];

__attribute__((noinline)) static unsigned checksum(int rounds) {
    unsigned sum = 1;
    for (int i = 0; i < rounds; i++)
        for (size_t at = 0; at < sizeof text; at++)
            sum = sum * 31 + (unsigned char)text[at];
    return sum;
}

static int compare(const void *a, const void *b) {
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

__attribute__((noinline)) static unsigned sort(int rounds) {
    static unsigned numbers[20000];
    for (int i = 0; i < rounds; i++) {
        for (size_t at = 0; at < 20000; at++)
            numbers[at] = (unsigned)(at * 2654435761u);
        qsort(numbers, 20000, sizeof *numbers, compare);
    }
    return numbers[7];
}

__attribute__((noinline)) static unsigned search(int rounds) {
    regex_t pattern;
    unsigned found = 0;
    if (regcomp(&pattern, "a[0-9]+b", REG_EXTENDED | REG_NOSUB))
        return 0;
    for (int i = 0; i < rounds; i++)
        found += regexec(&pattern, text + i % 64, 0, NULL, 0) == 0;
    regfree(&pattern);
    return found;
}

// The number is hidden from the compiler, so that the code is the same for any number.
static volatile int more = MORE;

int main(void) {
    for (size_t at = 0; at + 1 < sizeof text; at++)
        text[at] = (char)('a' + at * 7 % 26);
    printf("%u %u %u\n", checksum(500 + more), sort(150), search(900));
}
