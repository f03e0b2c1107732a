/* Three functions with 60, 30 and 10 % of the work. Rounds differ in length, so that no sampling
 * period can fall into step with them. */
#include "burn.h"

DEFINE_SINK;

NOINLINE void burn_sixty(uint64_t n) { sink += burn(6 * n); }
NOINLINE void burn_thirty(uint64_t n) { sink += burn(3 * n); }
NOINLINE void burn_ten(uint64_t n) { sink += burn(n); }

NOINLINE void work(uint64_t n) {
    burn_sixty(n);
    burn_thirty(n);
    burn_ten(n);
    sink++;
}

int main(int argc, char **argv) {
    uint64_t total = argument(argc, argv, 1, 300) * MILLISECOND / 10;
    uint64_t random = 1;
    for (uint64_t done = 0; done < total;) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t n = MILLISECOND / 10 + (random >> 33) % MILLISECOND;
        work(n);
        done += n;
    }
    return 0;
}
