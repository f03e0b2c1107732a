/* A fake CPython 3.11: the structures that prof reads, and an evaluation loop that is none. */
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake.h"

#define UNITS 16

struct text {
    uint64_t head[2], length, hash;
    uint32_t state, padding;
    uint64_t wstr;
    char characters[FILE_NAME];
};

struct table {
    uint64_t head[2], size, hash;
    uint8_t bytes[8];
};

struct code {
    uint64_t head[2], units, fields[6];
    uint32_t first_line, padding[9];
    struct text *filename, *name, *qualname;
    struct table *linetable;
    uint64_t more[5];
    uint8_t instructions[2 * UNITS];
};

struct frame {
    uint64_t fields[4];
    struct code *code;
    uint64_t locals;
    struct frame *previous;
    uint8_t *instruction;
    uint32_t stacktop;
    uint8_t is_entry, owner, padding[10];
};

struct cframe {
    uint64_t use_tracing;
    struct frame *current;
    struct cframe *previous;
};

struct thread {
    uint64_t fields[7];
    struct cframe *cframe;
    uint64_t more[12], native_id;
};

struct interpreter {
    struct interpreter *next;
    uint64_t field;
    struct thread *threads;
};

struct runtime {
    uint64_t fields[5];
    struct interpreter *interpreters;
} _PyRuntime;

const uint64_t Py_Version = 0x030b07f0;

static struct text names[MANY], files[MANY];
static struct table lines = {.size = 4, .bytes = {0xf0 | 7, 0xf0 | 7, 0xf0 | 7, 0xf0 | 7}};
static struct code codes[MANY];
static struct frame frames[MANY];
static struct thread thread;
static struct interpreter interpreter = {.threads = &thread};

static void fill(struct text *text, long round, int number, size_t length)
{
    text->length = length;
    text->state = 1 << 2 | 1 << 5 | 1 << 6;
    name_function(text->characters, length, round, number);
}

/* The characters of this version are at 48. */
_Static_assert(__builtin_offsetof(struct text, characters) == 48, "text");
_Static_assert(__builtin_offsetof(struct code, filename) == 112, "code");
_Static_assert(__builtin_offsetof(struct code, instructions) == 184, "code");
_Static_assert(__builtin_offsetof(struct frame, is_entry) == 68, "frame");
_Static_assert(sizeof(struct frame) == 80, "frame");
_Static_assert(__builtin_offsetof(struct thread, native_id) == 160, "thread");

static void name_all(long round)
{
    for (int i = 0; i < count; i++) {
        fill(&names[i], round, i, NAME);
        fill(&files[i], round, i, FILE_NAME);
    }
}

/* An indirect jump makes it a loop for prof. */
__attribute__((noinline)) void _PyEval_EvalFrameDefault(volatile int which)
{
    static void *targets[] = {&&again, &&over};
    uint8_t *volatile next = codes[0].instructions + 2;
    struct cframe volatile own = {0, &frames[0], NULL};
    long round = 0;
    thread.cframe = (struct cframe *)&own;
again:
    name_all(round++);
    goto *targets[!spin() || which];
over:
    thread.cframe = NULL;
    (void)next;
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    for (int i = 0; i < count; i++) {
        codes[i].units = UNITS;
        codes[i].first_line = i + 1;
        codes[i].filename = &files[i];
        codes[i].name = codes[i].qualname = &names[i];
        codes[i].linetable = &lines;
        frames[i].code = &codes[i];
        frames[i].previous = i + 1 < count ? &frames[i + 1] : NULL;
        frames[i].instruction = codes[i].instructions + 2;
    }
    frames[count - 1].is_entry = 1;
    thread.native_id = syscall(SYS_gettid);
    _PyRuntime.interpreters = &interpreter;
    _PyEval_EvalFrameDefault(0);
    return 0;
}
