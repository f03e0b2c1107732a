/* Works without any library, so that 32-bit code can be made of it where there are no 32-bit ones: ends by itself */
static volatile unsigned sink;

__attribute__((noinline)) static void compat_burn(void) {
    for (unsigned i = 0; i < 300u * 1000 * 1000; i++)
        sink += i;
}

void _start(void) {
    compat_burn();
    __asm__ volatile("int $0x80" : : "a"(1), "b"(0));
    for (;;)
        ;
}
