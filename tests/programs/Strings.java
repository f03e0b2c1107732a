/**
 * Functions that compare and search strings, whose compiled code pushes words below its frame. It
 * is ready when they are compiled, and ends when its input does.
 */
public class Strings {
    static final String LEFT = "x".repeat(3000) + "a", RIGHT = "x".repeat(3000) + "b";
    static final String NEEDLE = "x".repeat(20) + "b";

    static int compares(int rounds) {
        int sum = 0;
        for (int i = 0; i < rounds; i++) sum += LEFT.compareTo(RIGHT);
        return sum;
    }

    static int searches(int rounds) {
        int sum = 0;
        for (int i = 0; i < rounds; i++) sum += RIGHT.indexOf(NEEDLE);
        return sum;
    }

    static int inComparing(int rounds) {
        return compares(rounds) + 1;
    }

    static int inSearching(int rounds) {
        return searches(rounds) + 1;
    }

    public static void main(String[] arguments) throws Exception {
        int warm = 0;
        for (int i = 0; i < 300; i++) warm += inComparing(5000) + inSearching(50);
        Thread worker = new Thread(() -> {
            int sum = 0;
            while (true) sum += inComparing(50_000) + inSearching(500);
        });
        worker.setDaemon(true);
        worker.start();
        System.out.println(warm == 0 ? "" : "ready");
        System.in.read();
    }
}
