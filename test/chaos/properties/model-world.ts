import type { LineBackend, LockType, Subscription } from '../../../lib/backends/lock-backend.js';
import type { QuorumMember } from '../../../lib/backends/quorum/quorum-member.js';
import { until } from '../../support/until.js';
import type { Call, LockModel } from './lock-model.js';

export interface Client {
  readonly id: string;
  readonly backend: QuorumMember;
}

export type Channel = 'plain' | 'readWrite' | 'fair' | 'line';

/** A subscription of a client, and how often it should have been called, and how much more often it may have been. */
interface Ear {
  readonly client: Client;
  readonly key: string;
  readonly channel: Channel;
  heard: number;
  expected: number;
  allowed: number;
}

const TYPE_OF: Record<Exclude<Channel, 'line'>, LockType> = { plain: 'reentrant', readWrite: 'write', fair: 'fair' };

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

  async listen(client: number, name: string, channel: Channel): Promise<void> {
    const listener = this.clients[client];
    const ear: Ear = { client: listener, key: this.key(name), channel, heard: 0, expected: 0, allowed: 0 };
    const hear = () => {
      ear.heard++;
    };
    const { backend, id } = listener;
    const subscription =
      channel === 'line'
        ? (backend.line as LineBackend).listen(ear.key, id, hear)
        : backend.subscribe(ear.key, TYPE_OF[channel], id, hear);
    this.ears.push(ear);
    this.subscriptions.push(subscription);
    await subscription.ready;
  }

  /** Whether somebody listens to the plain channel of this key. */
  listens(key: string): boolean {
    return this.ears.some((ear) => ear.key === key && ear.channel === 'plain');
  }

  /** Whether the client of this owner listens for what concerns its place in the line of this key. */
  isHeard(key: string, owner: string): boolean {
    return this.ears.some((ear) => ear.key === key && ear.channel === 'line' && owner.startsWith(`${ear.client.id}:`));
  }

  /** Records who has to be woken by what `client` did. Returns how many other clients these are. */
  expect(calls: readonly Call[], client?: Client): number {
    const others = new Set<string>();
    for (const ear of this.ears) {
      const heard = calls.filter((each) => hears(ear, each));
      if (heard.length === 0) continue;
      if ('maybe' in heard[0]) {
        ear.allowed += heard.length;
        continue;
      }
      ear.expected += heard.length;
      // Clients that wait in line are not counted: a release grants them the lock.
      if (ear.client !== client && ear.channel !== 'line') others.add(ear.client.id);
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
  if ('channel' in call) return channel === call.channel;
  return 'head' in call
    ? channel === 'fair' && call.head.startsWith(`${client.id}:`)
    : channel === 'line' && call.first.startsWith(`${client.id}:`);
}
