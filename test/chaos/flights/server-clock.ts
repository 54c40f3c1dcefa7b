import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Replaces the time of day of a program by one that is off by what a file says, in seconds. */
const SOURCE = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static volatile long *offset;
__attribute__((constructor)) static void begin(void) {
  int file = open(getenv("CLOCK_FILE"), O_RDONLY);
  void *mapped = file < 0 ? MAP_FAILED : mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  offset = mapped == MAP_FAILED ? 0 : mapped;
}
static long ahead(void) { return offset ? *offset : 0; }
int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
  static int (*real)(struct timeval *, void *);
  if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
  int result = real(tv, tz);
  if (tv) tv->tv_sec += ahead();
  return result;
}
int clock_gettime(clockid_t id, struct timespec *ts) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(id, ts);
  if (id == CLOCK_REALTIME) ts->tv_sec += ahead();
  return result;
}
`;

/** A time of day that a test sets, for the programs that it starts with {@link env}. */
export class ServerClock {
  private constructor(private readonly folder: string) {}

  /** @returns undefined where there is no C compiler, or programs cannot be given another clock */
  static make(): ServerClock | undefined {
    if (process.platform !== 'linux') return undefined;
    const folder = mkdtempSync(join(tmpdir(), 'clock-'));
    const clock = new ServerClock(folder);
    try {
      writeFileSync(join(folder, 'clock.c'), SOURCE);
      execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', clock.library, join(folder, 'clock.c'), '-ldl'], {
        stdio: 'ignore',
      });
      writeFileSync(clock.file, Buffer.alloc(8));
      return clock;
    } catch {
      clock.remove();
      return undefined;
    }
  }

  get env(): Readonly<Record<string, string>> {
    return { LD_PRELOAD: this.library, CLOCK_FILE: this.file };
  }

  /** From now on the clock is this many seconds ahead of the time; below 0: behind it. */
  set(seconds: number): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(seconds));
    // In place: the file is mapped.
    writeFileSync(this.file, bytes, { flag: 'r+' });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private get library(): string {
    return join(this.folder, 'clock.so');
  }

  private get file(): string {
    return join(this.folder, 'offset');
  }
}
