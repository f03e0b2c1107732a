// Templates, lambdas and virtual calls, most of it inlined, some of it in namespaces.
#include "burn.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

DEFINE_SINK;

namespace shapes {

struct Shape {
    virtual ~Shape() = default;
    virtual uint64_t area(uint64_t scale) const = 0;
};

inline __attribute__((always_inline)) uint64_t innermost(uint64_t scale) { return burn(scale); }

template <int Sides> struct Polygon : Shape {
    NOINLINE uint64_t area(uint64_t scale) const override { return innermost(scale * Sides); }
};

} // namespace shapes

template <typename Function>
inline __attribute__((always_inline)) uint64_t for_all(
    const std::vector<std::unique_ptr<shapes::Shape>> &all, Function function) {
    return std::accumulate(all.begin(), all.end(), uint64_t(0),
                           [&](uint64_t sum, const auto &shape) { return sum + function(*shape); });
}

NOINLINE uint64_t total(const std::vector<std::unique_ptr<shapes::Shape>> &all, uint64_t scale) {
    return for_all(all, [scale](const shapes::Shape &shape) { return shape.area(scale); }) + 1;
}

int main(int argc, char **argv) {
    uint64_t scale = argument(argc, argv, 1, 200) * MILLISECOND / 1200;
    std::vector<std::unique_ptr<shapes::Shape>> all;
    for (int i = 0; i < 100; i++) {
        all.push_back(std::make_unique<shapes::Polygon<3>>());
        all.push_back(std::make_unique<shapes::Polygon<9>>());
    }
    sink += total(all, scale);
    return 0;
}
