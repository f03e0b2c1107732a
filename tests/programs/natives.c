/* n0 to n9 for php_pairs.php and ruby_pairs.rb: each takes as many rounds as it is told. */
#define NATIVE(number)                                                                            \
    __attribute__((noinline)) unsigned n##number(unsigned rounds)                                 \
    {                                                                                             \
        volatile unsigned sum = number;                                                           \
        for (unsigned i = 0; i < rounds; i++)                                                     \
            sum = sum * 31 + i;                                                                   \
        return sum;                                                                               \
    }

NATIVE(0)
NATIVE(1)
NATIVE(2)
NATIVE(3)
NATIVE(4)
NATIVE(5)
NATIVE(6)
NATIVE(7)
NATIVE(8)
NATIVE(9)
