/* Enables and disables its own sampling through two FIFOs, and changes its name while it is not
 * sampled: controlled_region COMMANDS ANSWERS MILLISECONDS */
#define _GNU_SOURCE
#include "burn.h"
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

DEFINE_SINK;

static FILE *commands, *answers;

static void request(const char *command) {
    char answer[8] = "";
    fprintf(commands, "%s\n", command);
    fflush(commands);
    if (!fgets(answer, sizeof answer, answers) || strcmp(answer, "ack\n") != 0)
        exit(9);
}

NOINLINE void outside(uint64_t rounds) { sink += burn(rounds); }
NOINLINE void inside(uint64_t rounds) { sink += burn(rounds); }

int main(int argc, char **argv) {
    uint64_t rounds = argument(argc, argv, 3, 100) * MILLISECOND;
    commands = fopen(argv[1], "w");
    answers = fopen(argv[2], "r");
    outside(rounds);
    request("enable");
    inside(rounds);
    request("disable");
    outside(rounds);
    prctl(PR_SET_NAME, "renamed");
    request("enable");
    inside(rounds);
    request("disable");
    outside(rounds);
    return 0;
}
