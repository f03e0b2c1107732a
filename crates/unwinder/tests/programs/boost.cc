// A coroutine of Boost.Context.
#include <boost/context/fiber.hpp>
#include "spin.h"
volatile unsigned long sink;
namespace context = boost::context;
__attribute__((noinline)) void step() { spin_leaf(300000); sink = sink + 1; }
int main() {
    context::fiber fiber([](context::fiber &&back) {
        for (int i = 0; i < 300; i++) {
            step();
            back = std::move(back).resume();
        }
        return std::move(back);
    });
    while (fiber) {
        fiber = std::move(fiber).resume();
        step();
    }
    return 0;
}
