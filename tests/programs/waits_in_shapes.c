/* Waits in functions whose code has different shapes. Each is called by main. */
#include <alloca.h>
#include <string.h>
#include <time.h>

static volatile int zero;

static void rest(void)
{
    struct timespec pause = {0, 10000000};
    nanosleep(&pause, 0);
}

/* A jump leads from the start to the condition, behind the body. */
__attribute__((noinline)) void in_loop(int count)
{
    for (int i = 0; i < count; i++)
        rest();
    zero = 0;
}

__attribute__((noinline)) void in_branch(int count)
{
    while (count > zero) {
        if (count % 2 == zero)
            rest();
        else if (count % 3 == zero)
            rest();
        else
            rest();
        count--;
    }
    zero = 0;
}

__attribute__((noinline)) void in_switch(int count)
{
    for (; count > zero; count--)
        switch (count % 5 + zero) {
        case 0: rest(); break;
        case 1: rest(); zero = 0; break;
        case 2: zero = 0; rest(); break;
        case 3: zero = 0; rest(); zero = 0; break;
        default: rest(); zero = 0; zero = 0;
        }
}

__attribute__((noinline)) void behind_early_exit(int count)
{
    if (count < zero)
        return;
    rest();
    if (count > zero)
        behind_early_exit(count - 1);
    zero = 0;
}

/* The distance of the stack pointer to the frame pointer is known at run time only. */
__attribute__((noinline)) void with_variable_frame(int count)
{
    struct timespec pause = {0, 10000000};
    char *bytes = alloca(count * 100 + zero);
    memset(bytes, 1, count * 100);
    /* No function between this one and libc's, which saves no frame pointer. */
    for (int i = 0; i < count; i++)
        nanosleep(&pause, 0);
    zero = bytes[count] - 1;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        with_variable_frame(40);
    else {
        in_loop(10);
        in_branch(10);
        in_switch(10);
        behind_early_exit(9);
    }
    return zero;
}
