/* libc calling back, hot memcpy and malloc, PLT stubs. */
#include <string.h>
#include "spin.h"
volatile unsigned long sink;
static int values[20000];
static char big[2][1 << 20];
__attribute__((noinline)) int compare(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    sink++;
    return (x > y) - (x < y);
}
__attribute__((noinline)) void sort(void) {
    for (int i = 0; i < 20000; i++) values[i] = rand();
    qsort(values, 20000, sizeof(int), compare);
    for (int i = 0; i < 2000; i++)
        sink += (unsigned long)bsearch(&values[i], values, 20000, sizeof(int), compare);
}
__attribute__((noinline)) void copy(void) {
    for (int i = 0; i < 200; i++) { memcpy(big[i & 1], big[~i & 1], sizeof big[0]); sink++; }
}
__attribute__((noinline)) void allocate(void) {
    for (int i = 0; i < 200000; i++) {
        char *p = malloc(i & 1023);
        if (p) *p = 1;
        free(p);
    }
}
__attribute__((noinline)) void calls(void) {
    for (int i = 0; i < 2000000; i++) sink += labs(rand());
}
int main(void) {
    long end = cpu_ms() + 600;
    while (cpu_ms() < end) { sort(); copy(); allocate(); calls(); }
    return 0;
}
