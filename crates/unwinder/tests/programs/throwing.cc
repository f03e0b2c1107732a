// Nothing but exceptions: through destructors, past handlers of other types, rethrown.
#include <stdexcept>
#include "spin.h"
volatile unsigned long sink;
#define NOINLINE __attribute__((noinline))
struct Guard {
    int number;
    NOINLINE ~Guard() { sink = sink + number; }
};
NOINLINE void thrower(int depth) {
    Guard guard{depth};
    if (depth == 0) throw std::runtime_error("bottom");
    thrower(depth - 1);
    sink = sink + 1;
}
NOINLINE void passed(int depth) {
    try {
        Guard guard{depth};
        thrower(depth);
    } catch (const std::logic_error &) {
        sink = sink + 2;
    }
    sink = sink + 1;
}
NOINLINE void rethrower(int depth) {
    try {
        passed(depth);
    } catch (...) {
        sink = sink + 3;
        throw;
    }
    sink = sink + 1;
}
NOINLINE void catcher(int depth) {
    try {
        rethrower(depth);
    } catch (const std::exception &) {
        sink = sink + 1;
    }
}
int main() {
    long end = cpu_ms() + 800;
    for (int i = 0; cpu_ms() < end; i++) catcher(i % 8);
    return 0;
}
