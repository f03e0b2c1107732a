/* A fake PHP 8.2: the structures that prof reads, and a function that runs none. */
#include <stdint.h>

#include "fake.h"

#define OPCODES 4
#define CALLED_BY_C (1 << 17)

struct string {
    uint64_t counts, hash, length;
    char bytes[FILE_NAME];
};

struct opcode {
    uint64_t fields[3];
    uint32_t line, kind;
};

struct function {
    uint8_t kind, padding[7];
    struct string *name;
    uint64_t scope, fields[7];
    uint32_t last, more;
    struct opcode *opcodes;
    uint64_t rest[7];
    struct string *filename;
    uint32_t line_start, line_end;
    uint64_t end[4];
};

struct frame {
    struct opcode *opline;
    uint64_t fields[2];
    struct function *function;
    uint64_t object;
    uint32_t call_info, arguments;
    struct frame *previous;
    uint64_t more;
};

struct {
    uint64_t fields[61];
    struct frame *current;
} executor_globals;

_Static_assert(__builtin_offsetof(struct function, opcodes) == 88, "function");
_Static_assert(__builtin_offsetof(struct function, filename) == 152, "function");
_Static_assert(__builtin_offsetof(struct frame, call_info) == 40, "frame");

static struct string names[MANY], files[MANY];
static struct opcode opcodes[MANY][OPCODES];
static struct function functions[MANY];
static struct frame frames[MANY];
const char *volatile build_id = "API20220829,NTS";

static void fill(struct string *string, long round, int number, size_t length)
{
    string->hash = round * MANY + number + 1;
    string->length = length;
    name_function(string->bytes, length, round, number);
}

static void name_all(long round)
{
    for (int i = 0; i < count; i++) {
        fill(&names[i], round, i, NAME);
        fill(&files[i], round, i, FILE_NAME);
    }
}

__attribute__((noinline)) void execute_ex(void)
{
    struct opcode *volatile next = opcodes[0] + 1;
    long round = 0;
    do
        name_all(round++);
    while (spin());
    (void)next;
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    for (int i = 0; i < count; i++) {
        functions[i].kind = 2;
        functions[i].name = &names[i];
        functions[i].last = OPCODES;
        functions[i].opcodes = opcodes[i];
        functions[i].filename = &files[i];
        functions[i].line_start = i + 1;
        frames[i].opline = opcodes[i] + 1;
        frames[i].function = &functions[i];
        frames[i].previous = i + 1 < count ? &frames[i + 1] : NULL;
    }
    frames[count - 1].call_info = CALLED_BY_C;
    executor_globals.current = &frames[0];
    if (build_id)
        execute_ex();
    return 0;
}
