/* Keeps a CPU busy for about half a second, through calls of every kind that stacks are made of:
 * nested and recursive ones, an inlined function, a callback from the C library, system calls. */
#include <stdio.h>
#include <stdlib.h>

volatile unsigned long sink;

__attribute__((noinline)) unsigned long leaf(unsigned long n)
{
    unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++)
        sum += i * i ^ (sum >> 3);
    return sum;
}

static inline __attribute__((always_inline)) unsigned long inlined(unsigned long n)
{
    unsigned long sum = 1;
    for (unsigned long i = 1; i < n; i++)
        sum = sum * 31 + i / 3;
    return sum;
}

__attribute__((noinline)) unsigned long recurse(int depth)
{
    unsigned long result = depth == 0 ? leaf(20000) : recurse(depth - 1) + 1;
    sink += result;
    return result;
}

__attribute__((noinline)) void middle(void)
{
    sink += leaf(50000);
    sink += inlined(30000);
}

int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

int main(void)
{
    static int numbers[2000];
    for (int i = 0; i < 2000; i++) {
        middle();
        sink += recurse(20);
        for (int k = 0; k < 2000; k++)
            numbers[k] = rand();
        qsort(numbers, 2000, sizeof numbers[0], compare);
        FILE *zeros = fopen("/dev/zero", "r");
        if (zeros) {
            char bytes[4096];
            sink += fread(bytes, 1, sizeof bytes, zeros);
            fclose(zeros);
        }
    }
    return 0;
}
