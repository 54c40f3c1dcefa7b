import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import type { LockService } from '../../lib/index.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import { guard } from '../support/process-guard.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';

const LOADER = fileURLToPath(new URL('../support/jest/typescript-loader.mjs', import.meta.url));
export const LEASE = 3_000;
export const BLOCK = 8_000;

export interface Said {
  readonly kind?: string;
  readonly held?: boolean;
  readonly left?: number;
  readonly aborted?: boolean;
  readonly result?: string;
  readonly failed?: string;
  readonly warning?: string;
  readonly error?: string;
  readonly lost?: string;
  readonly why?: string;
  readonly ticket?: string;
  readonly ready?: boolean;
  readonly done?: boolean;
  readonly fencingToken?: number;
  readonly longest?: number;
  readonly blocked?: { readonly blockedFor: number; readonly kept: number; readonly remainingTime: number };
}

/** Runs a program of support/processes, which prints lines of JSON. */
export function run(
  program: string,
  args: readonly string[],
  nodeOptions: readonly string[] = [],
): { child: ChildProcess; said: readonly Said[] } {
  const file = fileURLToPath(new URL(`../support/processes/${program}`, import.meta.url));
  const child = spawn(process.execPath, [...nodeOptions, '--import', LOADER, file, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  guard(child);
  const said: Said[] = [];
  createInterface(child.stdout).on('line', (line) => void said.push(JSON.parse(line)));
  return { child, said };
}

/** A Redis server, which is empty before each test of a `describe`, and a service of another process. */
export class BlockedWorld {
  server!: RedisServer;
  redis!: Redis;
  others!: LockService;

  constructor() {
    beforeAll(async () => {
      this.server = await startRedis();
      this.redis = this.server.client();
      this.others = createLockService({ connection: this.server.url, watchdogTimeout: LEASE });
    });
    afterAll(async () => {
      await this.others.close();
      await this.server.stop();
    });
    beforeEach(() => this.redis.flushall());
  }
}

/** A process that holds locks of these kinds, and blocks its event loop. See support/processes/blocked-loop.ts. */
export function startBlocked(
  kinds: readonly string[],
  connection: object,
  { options = {}, block = BLOCK }: { readonly options?: object; readonly block?: number } = {},
): Blocked {
  const given = { watchdogTimeout: LEASE, keepWhileBlocked: '30s', ...options };
  const args = [JSON.stringify(connection), JSON.stringify(given), kinds.join(), String(block)];
  const { child, said } = run('blocked-loop.ts', args);
  return new Blocked(child, said);
}

export class Blocked {
  constructor(
    readonly child: ChildProcess,
    readonly said: readonly Said[],
  ) {}

  ready() {
    return until(() => this.said.some(({ ready }) => ready));
  }

  done() {
    return until(() => this.said.some(({ done }) => done));
  }

  get warnings() {
    return this.said.flatMap(({ warning = [] }) => warning);
  }

  of(kind: string) {
    const about = this.said.filter((one) => one.kind === kind);
    return {
      belief: about.find(({ held }) => held !== undefined),
      end: about.find(({ held }) => held === undefined),
    };
  }
}
