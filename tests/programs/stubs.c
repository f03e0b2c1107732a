/* Calls into the C library that do nothing: much of the time is in the stubs of the calls
 * and in their targets. Needs -fno-builtin, or there is no call. */
#include <stdlib.h>
#include "burn.h"

DEFINE_SINK;

NOINLINE static void through_stubs(uint64_t calls) {
    for (uint64_t i = 0; i < calls; i++)
        sink += (uint64_t)labs(-(long)i);
}

int main(int argc, char **argv) {
    through_stubs(argument(argc, argv, 1, 300) * 1000000);
    return 0;
}
