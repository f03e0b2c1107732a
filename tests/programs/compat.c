/* Works without any library, so that it can be compiled to 32-bit code without 32-bit libraries;
 * ends by itself. */
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
