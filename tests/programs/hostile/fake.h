/* What all fake interpreters do: run for a while, showing other names again and again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* As many functions as a greedy program shows at once, and a modest one in all. */
#define MANY 256
#define FEW 8

/* The longest name that prof reads of these languages, and the longest file. */
#define NAME 256
#define FILE_NAME 1024

static int count = MANY;
static int rounds_left;
static volatile long spun;

/* greedy or modest, and for how many rounds */
static void begin(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "greedy";
    prctl(PR_SET_NAME, kind);
    if (strcmp(kind, "modest") == 0)
        count = FEW;
    rounds_left = argc > 2 ? atoi(argv[2]) : 10;
}

/* Writes the name of a function in a round; a modest program has the same ones in each. */
static inline void name_function(char *name, size_t length, long round, int number)
{
    /* In files, a control character takes four bytes. */
    memset(name, count == FEW ? 'x' : 1, length);
    int written = count == FEW ? snprintf(name, length, "modest%d", number)
                               : snprintf(name, length, "greedy%ld_%d", round, number);
    name[written] = '_';
}

/* Uses CPU time for a round, 5 ms, without a trace on the stack. Whether there is another one. */
static inline __attribute__((always_inline)) int spin(void)
{
    clock_t begin = clock();
    while (clock() - begin < CLOCKS_PER_SEC / 200)
        for (int i = 0; i < 100000; i++)
            spun++;
    return --rounds_left > 0;
}
