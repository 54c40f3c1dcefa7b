package interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * The real Redisson, driven over standard input. A line is `id thread command argument…` (blank-separated); its answer is
 * `id ok result` or `id error message`, then the wall-clock time in milliseconds at which the command ended. A thread
 * has any name, and is a separate owner to Redisson; the commands of one thread run one after the other.
 */
public final class RedissonPeer {
  private final RedissonClient redisson;
  private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();

  private RedissonPeer(String address) {
    Config config = new Config();
    config.useSingleServer().setAddress(address).setConnectionMinimumIdleSize(4).setConnectionPoolSize(32);
    redisson = Redisson.create(config);
  }

  public static void main(String[] arguments) throws Exception {
    RedissonPeer peer = new RedissonPeer(arguments[0]);
    System.out.println("ready");
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) peer.accept(line.split(" "));
    System.exit(0);
  }

  private void accept(String[] words) {
    threads.computeIfAbsent(words[1], name -> Executors.newSingleThreadExecutor()).execute(() -> {
      String answer;
      try {
        answer = "ok " + run(words);
      } catch (Exception error) {
        answer = "error " + error.getClass().getSimpleName();
      }
      long ended = System.currentTimeMillis();
      synchronized (System.out) {
        System.out.println(words[0] + " " + answer + " " + ended);
      }
    });
  }

  private Object run(String[] words) throws Exception {
    String name = words[3];
    return switch (words[2]) {
      case "lock" -> {
        lock(words[4], name).lock(Long.parseLong(words[5]), TimeUnit.MILLISECONDS);
        yield true;
      }
      case "tryLock" -> lock(words[4], name).tryLock(Long.parseLong(words[5]), Long.parseLong(words[6]), TimeUnit.MILLISECONDS);
      case "unlock" -> {
        lock(words[4], name).unlock();
        yield true;
      }
      case "forceUnlock" -> lock(words[4], name).forceUnlock();
      case "isLocked" -> lock(words[4], name).isLocked();
      case "lockAndGetToken" -> redisson.getFencedLock(name).lockAndGetToken();
      case "visit" -> visit(lock(words[4], name), words[5], words[1], Long.parseLong(words[6]));
      case "contend" -> contend(lock(words[4], name), words[5], Integer.parseInt(words[6]));
      case "trySetPermits" -> redisson.getSemaphore(name).trySetPermits(Integer.parseInt(words[4]));
      case "acquirePermits" -> {
        redisson.getSemaphore(name).acquire(Integer.parseInt(words[4]));
        yield true;
      }
      case "tryAcquirePermits" -> redisson.getSemaphore(name).tryAcquire(Integer.parseInt(words[4]));
      case "releasePermits" -> {
        redisson.getSemaphore(name).release(Integer.parseInt(words[4]));
        yield true;
      }
      case "availablePermits" -> redisson.getSemaphore(name).availablePermits();
      case "trySetExpirablePermits" -> expirable(name).trySetPermits(Integer.parseInt(words[4]));
      case "acquireExpirable" -> expirable(name).acquire(Long.parseLong(words[4]), TimeUnit.MILLISECONDS);
      case "releaseExpirable" -> {
        expirable(name).release(words[4]);
        yield true;
      }
      case "availableExpirable" -> expirable(name).availablePermits();
      case "trySetCount" -> redisson.getCountDownLatch(name).trySetCount(Long.parseLong(words[4]));
      case "countDown" -> {
        redisson.getCountDownLatch(name).countDown();
        yield true;
      }
      case "awaitLatch" -> redisson.getCountDownLatch(name).await(Long.parseLong(words[4]), TimeUnit.MILLISECONDS);
      default -> throw new IllegalArgumentException(words[2]);
    };
  }

  /** Adds one to a counter, `rounds` times, in two steps that are atomic only because of the lock. */
  private int contend(RLock lock, String counter, int rounds) {
    RBucket<String> bucket = redisson.getBucket(counter, StringCodec.INSTANCE);
    for (int round = 0; round < rounds; round++) {
      lock.lock();
      try {
        String value = bucket.get();
        bucket.set(Integer.toString(value == null ? 1 : Integer.parseInt(value) + 1));
      } finally {
        lock.unlock();
      }
    }
    return rounds;
  }

  /**
   * Waits for the lock, adds one to a counter, which guards the body as in fleet/guard.ts, and keeps the lock for
   * `hold` ms. Returns when it asked, was granted the lock and gave it back, in ns of the monotonic clock, the counter,
   * and the token of a fenced lock, or 0.
   */
  private String visit(RLock lock, String counter, String who, long hold) throws Exception {
    long asked = System.nanoTime();
    long token = 0;
    if (lock instanceof RFencedLock fenced) token = fenced.lockAndGetToken();
    else lock.lock();
    long granted = System.nanoTime();
    try {
      RBucket<String> inside = redisson.getBucket("inside:" + counter, StringCodec.INSTANCE);
      String former = inside.getAndSet(who);
      if (former != null) redisson.getList("overlaps:" + counter, StringCodec.INSTANCE).add(former + " " + who);
      long count = redisson.getAtomicLong(counter).incrementAndGet();
      Thread.sleep(hold);
      inside.compareAndSet(who, null);
      return asked + "," + granted + "," + System.nanoTime() + "," + count + "," + token;
    } finally {
      lock.unlock();
    }
  }

  private RLock lock(String kind, String name) {
    return switch (kind) {
      case "reentrant" -> redisson.getLock(name);
      case "fair" -> redisson.getFairLock(name);
      case "spin" -> redisson.getSpinLock(name);
      case "read" -> redisson.getReadWriteLock(name).readLock();
      case "write" -> redisson.getReadWriteLock(name).writeLock();
      case "fenced" -> redisson.getFencedLock(name);
      default -> throw new IllegalArgumentException(kind);
    };
  }

  private RPermitExpirableSemaphore expirable(String name) {
    return redisson.getPermitExpirableSemaphore(name);
  }
}
