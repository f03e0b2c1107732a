// Sorts in .NET's own library, which calls back; prints where it is, as .NET sees it.
using System;
using System.Runtime.CompilerServices;

class Sorted
{
    static int calls;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Compare(int a, int b)
    {
        if (calls++ == 0) Console.WriteLine(Environment.StackTrace);
        int sum = 1;
        for (int n = 20000; n > 0; n--) sum = (sum * 31 + n) % 65521;
        return sum < 0 ? 0 : a.CompareTo(b);
    }

    static void Main()
    {
        // Few enough for one way of sorting.
        var numbers = new int[12];
        for (int round = 0; round < 500; round++)
        {
            for (int i = 0; i < numbers.Length; i++) numbers[i] = (i * 7 + round) % 12;
            Array.Sort(numbers, Compare);
        }
    }
}
