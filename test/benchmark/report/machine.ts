import { existsSync, readFileSync } from 'node:fs';
import { cpus, totalmem, type } from 'node:os';
import { pathToFileURL } from 'node:url';
import type { Redis } from 'ioredis';
import type { Contestant } from '../contestants/contestant.js';

/** The peers are installed beside the benchmark; the dependencies of the library are not. */
const INSTALLED = ['test/benchmark/node_modules/', 'node_modules/'].map((folder) =>
  pathToFileURL(`${process.cwd()}/${folder}`),
);

/** Describes the machine and the software of the measurement in one line. */
export async function machine(redis: Redis): Promise<string> {
  const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1];
  const cores = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `Node.js ${process.version}, Redis ${version}, ioredis ${versionOf('ioredis')}, ${cores.length} × ${cores[0].model.trim()}, ${memory} GB, ${type()}`;
}

/** `redlock 5.0.0-beta.2`; only the name for what is not from npm. */
export function description({ name, package: of, does, waits }: Contestant): string {
  const version = of === undefined ? '' : ` ${versionOf(of)}`;
  const waiting = { nothing: '', polls: '; polls every 10 ms', listens: '; waits by pub/sub' }[waits];
  return `${of ?? name}${version}: ${does}${waiting}`;
}

function versionOf(name: string): string {
  const file = INSTALLED.map((folder) => new URL(`${name}/package.json`, folder)).find((each) => existsSync(each))!;
  return JSON.parse(readFileSync(file, 'utf8')).version.replace(/^v/, '');
}
