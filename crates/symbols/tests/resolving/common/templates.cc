// A C++ program full of templates, lambdas and local classes, to be inlined.
#include <algorithm>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace app {
namespace {
template <class T> struct Pool {
    std::vector<std::unique_ptr<T>> items;
    T &add(T value) {
        items.push_back(std::make_unique<T>(std::move(value)));
        return *items.back();
    }
};

struct Visitor {
    std::string operator()(int value) const { return std::to_string(value); }
    std::string operator()(const std::string &value) const { return value; }
    std::string operator()(double value) const {
        std::ostringstream out;
        out << value;
        return out.str();
    }
};
} // namespace

template <class K, class V> struct Table {
    std::map<K, V> ordered;
    std::unordered_map<K, V> hashed;

    void put(K key, V value) {
        ordered[key] = value;
        hashed.emplace(key, value);
    }

    size_t count(const std::function<bool(const V &)> &wanted) const {
        return std::count_if(ordered.begin(), ordered.end(),
                             [&](auto &entry) { return wanted(entry.second); });
    }
};
} // namespace app

int main(int, char **arguments) {
    app::Table<std::string, std::vector<int>> lists;
    app::Table<int, std::string> names;
    app::Pool<std::string> pool;
    for (int i = 0; i < 100; i++) {
        lists.put(std::to_string(i), {i, i + 1});
        names.put(i, pool.add("x" + std::to_string(i)));
    }
    std::regex pattern("([a-z]+)([0-9]+)(foo|bar)*");
    std::string text = arguments[0];
    std::smatch match;
    std::cout << std::regex_search(text, match, pattern);
    std::cout << lists.count([](auto &list) { return list.size() > 1; });
    std::cout << names.count([](auto &name) { return name.size() > 2; });
    std::vector<std::variant<int, double, std::string>> values{1, 2.5, "x"};
    for (auto &value : values)
        std::cout << std::visit(app::Visitor{}, value);
    std::vector<std::string> sorted;
    for (int i = 0; i < 1000; i++)
        sorted.push_back(std::to_string(i * 7919 % 1000));
    std::sort(sorted.begin(), sorted.end(),
              [](auto &a, auto &b) { return a.size() < b.size() || (a.size() == b.size() && a < b); });
    std::stable_sort(sorted.begin(), sorted.end());
    auto later = std::async(std::launch::async, [&] { return sorted.size(); });
    std::cout << later.get() << "\n";
}
