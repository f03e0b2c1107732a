/**
 * Two functions that do all the work, one of them twice as much. It is ready when they are
 * compiled, and ends when its input does; or after so many rounds as its argument says.
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

    public static void main(String[] arguments) throws Exception {
        int warm = 0;
        for (int i = 0; i < 100; i++) warm += light(100_000) + heavy(100_000);
        if (arguments.length > 0) {
            int rounds = Integer.parseInt(arguments[0]);
            for (int i = 0; i < rounds; i++) warm += light(100_000) + heavy(100_000);
            System.out.println(warm == 0 ? "" : "done");
            System.exit(7);
        }
        Thread worker = new Thread(() -> {
            int sum = 0;
            while (true) sum += light(100_000) + heavy(100_000);
        });
        worker.setDaemon(true);
        worker.start();
        System.out.println(warm == 0 ? "" : "ready");
        System.in.read();
    }
}
