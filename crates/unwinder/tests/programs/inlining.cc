// Heavy inlining, templates, exceptions, virtual calls, std::sort and std::map.
#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
#include "spin.h"
volatile unsigned long sink;
struct Shape { virtual ~Shape() = default; virtual double area(double) const = 0; };
struct Square : Shape { double area(double s) const override { return s * s; } };
struct Round : Shape { double area(double s) const override { return s * s * 3.14; } };
__attribute__((noinline)) void thrower(int i) { if (i % 60 == 0) throw std::runtime_error("x"); }
__attribute__((noinline)) void round_of_work(int seed) {
    std::vector<std::string> words;
    for (int i = 0; i < 2000; i++) words.push_back(std::to_string((i * 7919 + seed) % 5000));
    std::sort(words.begin(), words.end(), [](const auto &a, const auto &b) { return a > b; });
    std::map<std::string, int> counts;
    for (auto &word : words) counts[word]++;
    std::function<double(double)> f = [&](double x) {
        Square square; Round round;
        const Shape *shapes[] = {&square, &round};
        return shapes[seed & 1]->area(x);
    };
    for (int i = 0; i < 300; i++) {
        try { thrower(i); sink = sink + f(i); } catch (const std::exception &) { sink = sink + 1; }
    }
}
int main() {
    long end = cpu_ms() + 600;
    for (int i = 0; cpu_ms() < end; i++) round_of_work(i);
    return 0;
}
