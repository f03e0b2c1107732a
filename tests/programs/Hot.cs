// Two functions that do all the work, one of them twice as much.
// No round is as long as the one before: a period of its own could fit the sampling rate.
using System;
using System.Runtime.CompilerServices;

class Hot
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Light(int n)
    {
        int sum = 1;
        for (; n > 0; n--) sum = (sum * 31 + n) % 65521;
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Heavy(int n)
    {
        int sum = 1;
        for (; n > 0; n--) sum = (sum * 31 + n) % 65521;
        return sum;
    }

    static void Main()
    {
        int sum = 0;
        for (int round = 0; round < 1500; round++)
        {
            int n = 50000 + sum % 100000;
            sum += Light(n) + Heavy(2 * n);
        }
        Console.WriteLine(sum);
    }
}
