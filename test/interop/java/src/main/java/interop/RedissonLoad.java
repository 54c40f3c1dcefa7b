package interop;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * The real Redisson as a contestant of the benchmark, with one thread per caller. It reads one task per line from
 * standard input and answers each with one line of JSON: `loop callers one|fresh key body duration`,
 * `gather key count`, `watch duration`, `drain patience`. If it is started with a number of services, each of these is
 * a client with one thread: `contend key body least most pause startAt countFrom endAt`.
 */
public final class RedissonLoad {
  private final RedissonClient redisson;
  private final OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
  private RLock held;
  private CountDownLatch waiting;

  private final List<RedissonClient> services = new ArrayList<>();

  private RedissonLoad(String address, int services) {
    Config config = new Config();
    config.useSingleServer().setAddress(address).setConnectionMinimumIdleSize(24).setConnectionPoolSize(64);
    redisson = services == 0 ? Redisson.create(config) : null;
    Config small = new Config();
    small.setThreads(2).setNettyThreads(2);
    small.useSingleServer().setAddress(address).setConnectionMinimumIdleSize(1).setConnectionPoolSize(2).setSubscriptionConnectionMinimumIdleSize(1).setSubscriptionConnectionPoolSize(1);
    while (this.services.size() < services) this.services.add(Redisson.create(small));
  }

  public static void main(String[] arguments) throws Exception {
    RedissonLoad load = new RedissonLoad(arguments[0], arguments.length > 1 ? Integer.parseInt(arguments[1]) : 0);
    System.out.println("ready");
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try {
      for (String line = input.readLine(); line != null; line = input.readLine()) System.out.println(load.run(line.split(" ")));
    } catch (Exception error) {
      error.printStackTrace();
      System.exit(1);
    }
    System.exit(0);
  }

  private String run(String[] words) throws Exception {
    return switch (words[0]) {
      case "loop" -> loop(Integer.parseInt(words[1]), words[2].equals("fresh"), words[3], Long.parseLong(words[4]), Long.parseLong(words[5]));
      case "contend" -> contend(words[1], Long.parseLong(words[2]), Arrays.stream(words).skip(3).mapToDouble(Double::parseDouble).toArray());
      case "gather" -> gather(words[1], Integer.parseInt(words[2]));
      case "watch" -> watch(Long.parseLong(words[1]));
      case "drain" -> drain(Long.parseLong(words[1]));
      default -> throw new IllegalArgumentException(words[0]);
    };
  }

  private String loop(int callers, boolean fresh, String key, long body, long duration) throws Exception {
    long[][] latencies = new long[callers][];
    AtomicInteger names = new AtomicInteger();
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger overlaps = new AtomicInteger();
    long cpu = system.getProcessCpuTime();
    long start = System.nanoTime();
    long until = start + TimeUnit.MILLISECONDS.toNanos(duration);
    Thread[] threads = new Thread[callers];
    for (int i = 0; i < callers; i++) {
      int caller = i;
      threads[i] = new Thread(() -> {
        LongStream.Builder mine = LongStream.builder();
        do {
          long asked = System.nanoTime();
          RLock lock = redisson.getLock(fresh ? key + ":" + names.incrementAndGet() : key);
          lock.lock();
          if (inside.incrementAndGet() > 1 && !fresh) overlaps.incrementAndGet();
          pause(body);
          inside.decrementAndGet();
          lock.unlock();
          mine.add(System.nanoTime() - asked);
        } while (System.nanoTime() < until);
        latencies[caller] = mine.build().toArray();
      });
      threads[i].start();
    }
    for (Thread thread : threads) thread.join();
    double elapsed = (System.nanoTime() - start) / 1e6;
    double used = (system.getProcessCpuTime() - cpu) / 1e3;
    long[] all = Arrays.stream(latencies).flatMapToLong(Arrays::stream).sorted().toArray();
    String counts = Arrays.stream(latencies).map(each -> String.valueOf(each.length)).collect(Collectors.joining(","));
    return String.format(Locale.ROOT, 
        "{\"operations\":%d,\"elapsed\":%f,\"cpu\":%f,\"p50\":%f,\"p99\":%f,\"callers\":[%s],\"overlaps\":%d,\"outOfOrder\":0}",
        all.length, elapsed, used, all[all.length / 2] / 1e3, all[(int) (all.length * 0.99)] / 1e3, counts, overlaps.get());
  }

  /** What worker/services.ts does in Node.js. The times are milliseconds of System.nanoTime(). */
  private String contend(String key, long body, double[] times) throws Exception {
    double least = times[0], most = times[1], pause = times[2], startAt = times[3], countFrom = times[4], endAt = times[5];
    AtomicInteger refused = new AtomicInteger();
    int[] bodies = new int[services.size()];
    List<Double> holdings = Collections.synchronizedList(new ArrayList<>());
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < bodies.length; i++) {
      int service = i;
      threads.add(new Thread(() -> {
        RLock lock = services.get(service).getLock(key);
        pause((long) (startAt - now()));
        while (now() < endAt) {
          boolean held = true;
          try {
            if (least < 0) lock.lock();
            else held = lock.tryLock((long) ThreadLocalRandom.current().nextDouble(least, most), TimeUnit.MILLISECONDS);
          } catch (InterruptedException error) {
            throw new IllegalStateException(error);
          }
          double began = now();
          boolean counts = began >= countFrom && began < endAt;
          if (!held) {
            if (counts) refused.incrementAndGet();
            pause((long) ThreadLocalRandom.current().nextDouble(0, pause));
            continue;
          }
          if (counts) bodies[service]++;
          if (began < endAt) pause(body);
          double ended = now();
          synchronized (holdings) {
            holdings.add(began);
            holdings.add(ended);
          }
          lock.unlock();
        }
      }));
      threads.get(i).start();
    }
    pause((long) (countFrom - now()));
    long cpu = system.getProcessCpuTime();
    pause((long) (endAt - now()));
    double used = (system.getProcessCpuTime() - cpu) / 1e3;
    for (Thread thread : threads) thread.join();
    String counts = Arrays.stream(bodies).mapToObj(String::valueOf).collect(Collectors.joining(","));
    String held = holdings.stream().map(at -> String.format(Locale.ROOT, "%f", at)).collect(Collectors.joining(","));
    return String.format(Locale.ROOT, "{\"bodies\":[%s],\"refused\":%d,\"cpu\":%f,\"holdings\":[%s]}", counts, refused.get(), used, held);
  }

  private static double now() {
    return System.nanoTime() / 1e6;
  }

  private String gather(String key, int count) throws Exception {
    held = redisson.getLock(key);
    held.lock();
    waiting = new CountDownLatch(count);
    for (int i = 0; i < count; i++) {
      Thread thread = new Thread(() -> {
        RLock lock = redisson.getLock(key);
        lock.lock();
        lock.unlock();
        waiting.countDown();
      });
      thread.setDaemon(true);
      thread.start();
    }
    return "null";
  }

  private String watch(long duration) throws Exception {
    long cpu = system.getProcessCpuTime();
    Thread.sleep(duration);
    return String.format(Locale.ROOT, "{\"cpu\":%f}", (system.getProcessCpuTime() - cpu) / 1e3);
  }

  private String drain(long patience) throws Exception {
    long all = waiting.getCount();
    long start = System.nanoTime();
    held.unlock();
    waiting.await(patience, TimeUnit.MILLISECONDS);
    return String.format(Locale.ROOT, "{\"served\":%d,\"elapsed\":%f}", all - waiting.getCount(), (System.nanoTime() - start) / 1e6);
  }

  private static void pause(long duration) {
    try {
      if (duration > 0) Thread.sleep(duration);
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }
}
