import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One empty file for each port that was given to a test, so that test processes do not give the same one twice. */
const CLAIMS = join(tmpdir(), 'nestjs-redis-lock-ports');
/** Tests end sooner than this. After it, a port whose server has ended may be given again. In milliseconds. */
const CLAIM_TIME = 5 * 60_000;

/**
 * A free loopback port between 12000 and 21999, which no other test gets in the next five minutes, even while nothing
 * listens on it. This is below the range from which the kernel takes the ports of outgoing connections, so that a
 * server can restart on its port. Other servers do not use the bus port of a cluster (+10000) either. A program that
 * is not a test may take the port first.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 10_000);
    if (claim(port) && (await canListen(port))) return port;
  }
}

function claim(port: number): boolean {
  const file = join(CLAIMS, String(port));
  mkdirSync(CLAIMS, { recursive: true });
  try {
    const claimed = statSync(file, { throwIfNoEntry: false });
    if (claimed !== undefined && Date.now() - claimed.mtimeMs > CLAIM_TIME) rmSync(file, { force: true });
    writeFileSync(file, '', { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
