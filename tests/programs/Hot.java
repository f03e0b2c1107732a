/**
 * Two functions that do all the work, one of them twice as much. It is ready when they are
 * compiled, and ends when its input does; or after so many rounds as its argument says. No round
 * is as long as the one before: what has a period of its own does not fit a sampling rate.
 */
public class Hot {
    static int light(int rounds) {
        int sum = 1;
        for (int i = 0; i < rounds; i++) sum = (sum * 31 + i) % 65521;
        return sum;
    }

    static int heavy(int rounds) {
        int sum = 1;
        for (int i = 0; i < 2 * rounds; i++) sum = (sum * 31 + i) % 65521;
        return sum;
    }

    static int next(int sum) {
        return 50_000 + Math.floorMod(sum, 100_000);
    }

    public static void main(String[] arguments) throws Exception {
        int warm = 0;
        for (int i = 0; i < 100; i++) warm += light(next(warm)) + heavy(next(warm));
        if (arguments.length > 0) {
            int rounds = Integer.parseInt(arguments[0]);
            for (int i = 0; i < rounds; i++) warm += light(next(warm)) + heavy(next(warm));
            System.out.println(warm == 0 ? "" : "done");
            System.exit(7);
        }
        Thread worker = new Thread(() -> {
            int sum = 0;
            while (true) sum += light(next(sum)) + heavy(next(sum));
        });
        worker.setDaemon(true);
        worker.start();
        System.out.println(warm == 0 ? "" : "ready");
        System.in.read();
    }
}
