/* A system call every five to ten microseconds, by the speed of the machine: clock_calls
 * MILLISECONDS */
#include "burn.h"
#include "cpu_now.h"

DEFINE_SINK;

NOINLINE void between_calls(void) { sink += burn(MILLISECOND / 100); }

int main(int argc, char **argv) {
    uint64_t end = argument(argc, argv, 1, 300);
    while (cpu_now() < end)
        between_calls();
    return 0;
}
