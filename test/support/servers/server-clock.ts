import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('server-clock.c', import.meta.url));

/** A time of day that a test sets, for the programs that it starts with {@link env}. */
export class ServerClock {
  private constructor(private readonly folder: string) {}

  /** @returns undefined where there is no C compiler, or programs cannot be given another clock */
  static make(): ServerClock | undefined {
    if (process.platform !== 'linux') return undefined;
    const folder = mkdtempSync(join(tmpdir(), 'clock-'));
    const clock = new ServerClock(folder);
    try {
      execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', clock.library, SOURCE, '-ldl'], { stdio: 'ignore' });
      writeFileSync(clock.file, Buffer.alloc(8));
      return clock;
    } catch {
      clock.remove();
      return undefined;
    }
  }

  get env(): Readonly<Record<string, string>> {
    return { LD_PRELOAD: this.library, CLOCK_SHIFT: this.file };
  }

  /** From now on the clock is this many seconds ahead of the time; below 0: behind it. */
  set(seconds: number): void {
    // In place: the file is mapped.
    writeFileSync(this.file, Buffer.from(new Float64Array([seconds]).buffer), { flag: 'r+' });
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
