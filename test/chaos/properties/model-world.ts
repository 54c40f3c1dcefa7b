import type { LockType, Subscription } from '../../../lib/backends/lock-backend.js';
import type { QuorumMember } from '../../../lib/backends/quorum/quorum-member.js';
import { until } from '../../support/until.js';
import type { Call, LockModel } from './lock-model.js';

export interface Client {
  readonly id: string;
  readonly backend: QuorumMember;
}

/** A subscription of a client, and how often it should have been called, and how much more often it may have been. */
interface Ear {
  readonly client: Client;
  readonly key: string;
  readonly channel: 'plain' | 'readWrite' | 'fair';
  heard: number;
  expected: number;
  allowed: number;
}

const TYPE_OF: Record<Ear['channel'], LockType> = { plain: 'reentrant', readWrite: 'write', fair: 'fair' };

/** A real backend with the requests of a run, and the model of what it should have done. */
export class ModelWorld {
  readonly tokens = new Map<string, number>();
  private readonly ears: Ear[] = [];
  private readonly subscriptions: Subscription[] = [];

  /** @param elapse lets this many milliseconds pass on the backend's clock */
  constructor(
    readonly model: LockModel,
    readonly clients: readonly Client[],
    readonly elapse: (time: number) => Promise<void>,
    private readonly prefix: string,
  ) {}

  /** The key in this run. */
  key(name: string): string {
    return `${this.prefix}${name}`;
  }

  owner(client: number, number: number): string {
    return `${this.clients[client].id}:${number}`;
  }

  async listen(client: number, name: string, channel: Ear['channel']): Promise<void> {
    const listener = this.clients[client];
    const ear: Ear = { client: listener, key: this.key(name), channel, heard: 0, expected: 0, allowed: 0 };
    const hear = () => {
      ear.heard++;
    };
    const subscription = listener.backend.subscribe(ear.key, TYPE_OF[channel], listener.id, hear);
    this.ears.push(ear);
    this.subscriptions.push(subscription);
    await subscription.ready;
  }

  /** Records who has to be woken by what `client` did. Returns how many other clients these are. */
  expect(calls: readonly Call[], client?: Client): number {
    const others = new Set<string>();
    for (const ear of this.ears) {
      const call = calls.find((each) => hears(ear, each));
      if (call === undefined) continue;
      if ('maybe' in call) {
        ear.allowed++;
        continue;
      }
      ear.expected++;
      if (ear.client !== client) others.add(ear.client.id);
    }
    return others.size;
  }

  /** Checks that every listener has received its messages, and no others. */
  async settled(): Promise<void> {
    await until(() => this.ears.every(({ heard, expected }) => heard >= expected), 2_000).catch(() => {});
    for (const ear of this.ears) {
      const came = Math.max(0, Math.min(ear.heard - ear.expected, ear.allowed));
      ear.allowed -= came;
      ear.expected += came;
    }
    const show = ({ client, key, channel }: Ear) => `${client.id} on ${channel} of ${key}`;
    const heard = this.ears.map((ear) => [show(ear), ear.heard]);
    const expected = this.ears.map((ear) => [show(ear), ear.expected]);
    if (JSON.stringify(heard) !== JSON.stringify(expected)) expect({ heard }).toEqual({ heard: expected });
  }

  close(): void {
    for (const subscription of this.subscriptions) subscription.close();
  }
}

function hears({ key, channel, client }: Ear, call: Call): boolean {
  if (key !== call.key) return false;
  return 'channel' in call ? channel === call.channel : channel === 'fair' && call.head.startsWith(`${client.id}:`);
}
