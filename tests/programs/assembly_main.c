/* Calls what assembly.S defines: assembly NAME MILLISECONDS */
#include "burn.h"
#include <string.h>

DEFINE_SINK;

void asm_leaf(uint64_t rounds);
void asm_pushes(uint64_t rounds);
void asm_calls(uint64_t rounds, void (*function)(uint64_t));
void bare_leaf(uint64_t rounds);
void bare_framed(uint64_t rounds, void (*function)(uint64_t));
void bare_calls(uint64_t rounds, void (*function)(uint64_t));

NOINLINE void called_back(uint64_t rounds) { sink += burn(rounds); }

NOINLINE int run(const char *name, uint64_t rounds) {
    if (strcmp(name, "asm_leaf") == 0)
        asm_leaf(rounds);
    else if (strcmp(name, "asm_pushes") == 0)
        asm_pushes(rounds / 2);
    else if (strcmp(name, "asm_calls") == 0)
        asm_calls(rounds, called_back);
    else if (strcmp(name, "bare_leaf") == 0)
        bare_leaf(rounds);
    else if (strcmp(name, "bare_framed") == 0)
        bare_framed(rounds, called_back);
    else if (strcmp(name, "bare_calls") == 0)
        bare_calls(rounds, called_back);
    else
        return 1;
    sink++;
    return 0;
}

int main(int argc, char **argv) {
    uint64_t rounds = argument(argc, argv, 2, 200) * MILLISECOND / 10;
    for (int i = 0; i < 10; i++)
        if (argc < 2 || run(argv[1], rounds) != 0)
            return 1;
    return 0;
}
