import java.util.HashMap;
import java.util.Random;

/**
 * Functions n0 to n9, each called by its f0 to f9 only, in random order and at random depths, so
 * that a wrong caller shows. Each has frames of another kind and size. It is ready when they are
 * compiled, and ends when its input does.
 */
public class Pairs {
    static int[] numbers = new int[512];
    static int[] copies = new int[512];
    static long sum;
    static final Object LOCK = new Object();

    interface Work {
        long run(int seed);
    }

    static long n0(int seed) {
        long a = seed;
        for (int i = 0; i < 4000; i++) a = a * 31 + i % 7;
        return a;
    }

    static long n1(int seed) {
        for (int i = 0; i < 40; i++) System.arraycopy(numbers, 1, copies, i & 7, 500);
        return copies[seed & 511];
    }

    static long n2(int seed) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 60; i++) text.append(seed + i).append(' ');
        return text.toString().hashCode();
    }

    static long n3(int seed) {
        double a = seed, b = 1, c = 2, d = 3;
        for (int i = 0; i < 60; i++) {
            a += Math.sin(b + i);
            b += Math.exp(c / 100);
            c = Math.cos(d) + a % 3;
            d = Math.log(1 + Math.abs(a)) + c;
        }
        return (long) (a + b + c + d);
    }

    static long n4(int seed) {
        long caught = 0;
        for (int i = 0; i < 4; i++) {
            try {
                fail(seed + i);
            } catch (IllegalStateException expected) {
                caught += expected.getMessage().length();
            }
        }
        return caught;
    }

    static void fail(int seed) {
        if (seed != 0) throw new IllegalStateException("n4");
    }

    static long n5(int depth) {
        return depth <= 0 ? 1 : n5(depth - 1) + n0of5(depth);
    }

    static long n0of5(int seed) {
        long a = seed;
        for (int i = 0; i < 200; i++) a = a * 17 + i;
        return a;
    }

    static long n6(int seed) {
        HashMap<Integer, Long> map = new HashMap<>();
        for (int i = 0; i < 60; i++) map.merge((seed + i) % 20, (long) i, Long::sum);
        return map.size();
    }

    static long n7(int seed) {
        long a = seed;
        for (int i = 0; i < 40; i++) {
            synchronized (LOCK) {
                a += n0of7(i);
            }
        }
        return a;
    }

    static synchronized long n0of7(int seed) {
        return sum += seed;
    }

    static long n8(int seed) {
        long a = seed;
        for (int i = 0; i < 40; i++) a += System.nanoTime() ^ Thread.currentThread().hashCode();
        return a;
    }

    static long n9(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) {
        for (int k = 0; k < 1500; k++) {
            a += b ^ k; b += c; c += d ^ a; d += e; e += f ^ b; f += g; g += h ^ c; h += i; i += j;
            j ^= a;
        }
        return a + b + c + d + e + f + g + h + i + j;
    }

    static long f0(int seed) { return n0(seed) + 1; }
    static long f1(int seed) { long a = seed; return a + n1(seed) + a; }
    static long f2(int seed) { long a = seed, b = a * 3; return n2(seed) + a + b; }
    static long f3(int seed) { double a = seed; return (long) (n3(seed) + a); }
    static long f4(int seed) { return n4(seed | 1); }
    static long f5(int seed) { return n5(seed & 15); }
    static long f6(int seed) { Work work = Pairs::n6; return work.run(seed); }
    static synchronized long f7(int seed) { return n7(seed); }
    static long f8(int seed) { long a = seed, b = a, c = b + 1; return n8(seed) + a + b + c; }
    static long f9(int seed) { return n9(seed, 2, 3, 4, 5, 6, 7, 8, 9, 10); }

    /** Goes down some frames first. */
    static long dive(int depth, int which, int seed) {
        if (depth > 0) return dive(depth - 1, which, seed) + depth;
        switch (which) {
            case 0: return f0(seed);
            case 1: return f1(seed);
            case 2: return f2(seed);
            case 3: return f3(seed);
            case 4: return f4(seed);
            case 5: return f5(seed);
            case 6: return f6(seed);
            case 7: return f7(seed);
            case 8: return f8(seed);
            default: return f9(seed);
        }
    }

    static void work(Random random, int rounds) {
        for (int i = 0; i < rounds; i++) {
            sum += dive(random.nextInt(20), random.nextInt(10), random.nextInt(1000));
        }
    }

    public static void main(String[] arguments) throws Exception {
        work(new Random(1), 20_000);
        Thread worker = new Thread(() -> {
            Random random = new Random(7);
            while (true) work(random, 1000);
        });
        worker.setDaemon(true);
        worker.start();
        System.out.println("ready");
        System.in.read();
    }
}
