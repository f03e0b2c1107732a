/* Work in callbacks that libc calls: qsort and bsearch. */
#include "burn.h"

DEFINE_SINK;

#define COUNT 2000

NOINLINE int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    sink += burn(300);
    return (x > y) - (x < y);
}

NOINLINE int look(const void *a, const void *b) {
    sink += burn(150);
    return compare(a, b);
}

NOINLINE void sort(uint32_t *numbers) {
    qsort(numbers, COUNT, sizeof *numbers, compare);
    sink++;
}

/* Through a pointer, because headers may define bsearch inline. */
static void *(*volatile find)(const void *, const void *, size_t, size_t,
                              int (*)(const void *, const void *)) = bsearch;

NOINLINE void search(uint32_t *numbers) {
    for (uint32_t i = 0; i < COUNT; i++)
        sink += find(&i, numbers, COUNT, sizeof *numbers, look) != NULL;
}

int main(int argc, char **argv) {
    static uint32_t numbers[COUNT];
    uint64_t rounds = argument(argc, argv, 1, 10);
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < COUNT; i++)
            numbers[i] = i * 2654435761u;
        sort(numbers);
        search(numbers);
    }
    return 0;
}
