// Frames of odd shape: variable length arrays, alloca, and more alignment than the ABI gives.
#include "burn.h"

#include <alloca.h>
#include <cstring>

DEFINE_SINK;

extern "C" NOINLINE void leaf(uint64_t rounds) { sink += burn(rounds); }

extern "C" NOINLINE void variable(int size, uint64_t rounds) {
    char room[size];
    memset(room, size, size_t(size));
    leaf(rounds);
    sink += uint64_t(room[size / 2]);
}

extern "C" NOINLINE void borrowed(int size, uint64_t rounds) {
    char *room = static_cast<char *>(alloca(size_t(size)));
    memset(room, size, size_t(size));
    variable(size + 13, rounds);
    sink += uint64_t(room[size / 2]);
}

extern "C" NOINLINE void aligned(int size, uint64_t rounds) {
    alignas(256) char room[256];
    memset(room, size, sizeof room);
    borrowed(size + 7, rounds);
    sink += uint64_t(room[size % 256]);
}

extern "C" NOINLINE void aligned_and_variable(int size, uint64_t rounds) {
    alignas(64) char fixed[64];
    char room[size];
    memset(fixed, size, sizeof fixed);
    memset(room, size, size_t(size));
    aligned(size + 3, rounds);
    sink += uint64_t(room[size / 2] + fixed[size % 64]);
}

int main(int argc, char **argv) {
    uint64_t rounds = argument(argc, argv, 1, 200) * MILLISECOND / 100;
    for (int i = 0; i < 100; i++)
        aligned_and_variable(100 + i, rounds);
    return 0;
}
