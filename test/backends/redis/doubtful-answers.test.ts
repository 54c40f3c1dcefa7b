import { slotOf } from '../../../lib/backends/redis/hash-slot.js';
import type { SentCommand } from '../../../lib/backends/redis/links/link.js';
import { type Topology, TopologyFactory } from '../../../lib/backends/redis/links/topology.js';
import { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

const COMMAND_TIMEOUT = 1_000;

/** A command that a test answers. */
class ManualCommand implements SentCommand {
  socket: object | undefined;
  resent = false;
  writtenAt = 0;
  idleSinceWrite: number | undefined;
  isLost = false;
  destroyed = false;
  answer!: (reply: unknown) => void;
  fail!: (error: Error) => void;
  readonly reply = new Promise<unknown>((resolve, reject) => {
    this.answer = resolve;
    this.fail = reject;
  });

  constructor(
    readonly name: string,
    readonly key: string | undefined,
  ) {}

  isAnswer(): boolean {
    return true;
  }

  abandon(): void {}

  destroySocket(): void {
    this.destroyed = true;
  }
}

/** A backend whose commands are answered by the test, except for those that ask for the server's name. */
function open(isCluster: boolean) {
  const runtime = new VirtualRuntime();
  const commands: ManualCommand[] = [];
  const topology = {
    library: 'manual',
    description: 'manual',
    usesTls: false,
    owned: true,
    isCluster,
    database: 0,
    replacesSilentConnections: true,
    connectionError: undefined,
    ended: false,
    connect: () => {},
    nodeOfSlot: (slot: number | undefined) => `node-${slot}`,
    masters: () => [],
    refresh: () => {},
    close: async () => {},
    send: (name: string, _args: readonly string[], key?: string) => {
      const command = new ManualCommand(name, key);
      if (name === 'info') command.answer('');
      else commands.push(command);
      return command;
    },
  } as Partial<Topology> as Topology;
  const backend = new RedisBackend({
    connection: new TopologyFactory(() => topology),
    runtime,
    commandTimeout: COMMAND_TIMEOUT,
    shardedPubSub: 'off',
    minReplicas: 0,
    onError: () => {},
  });
  /** The next command of this name. */
  const next = async (name: string) => {
    await runtime.settle();
    const [command] = commands.splice(
      commands.findIndex((other) => other.name === name),
      1,
    );
    expect(command.name).toBe(name);
    return command;
  };
  return { backend, runtime, next };
}

const acquisition = (key: string) =>
  ({ key, type: 'reentrant', owner: 'a:1', leaseTime: 1_000, reserve: 0, waiterTimeout: 0 }) as const;

/** The reply to TIME. */
const TIME = ['1735689600', '0'];

describe('an acquisition whose first copy may have been executed, as its connection broke before the answer', () => {
  it.each([
    ['came too late', (copy: ManualCommand) => copy.answer(['expired', 1_735_689_600_000]), 'evalsha'],
    ['found the script unknown', (copy: ManualCommand) => copy.fail(new Error('NOSCRIPT No matching script')), 'eval'],
  ])('stays in doubt when its second copy %s, and a third one is never sent', async (_what, answer, again) => {
    const { backend, runtime, next } = open(false);
    const acquired = expect(backend.acquire(acquisition('order'))).rejects.toMatchObject({ outcome: 'unknown' });
    (await next('time')).answer(TIME);
    const twice = await next('evalsha');
    twice.socket = {};
    twice.resent = true;
    answer(twice);
    await next(again); // it waits for a connection
    await runtime.until(acquired);
    await backend.close();
  });
});

describe('a cluster one of whose nodes does not say its time', () => {
  it('gets a new connection to that node, although another node has answered since', async () => {
    const { backend, runtime, next } = open(true);
    expect(slotOf('order')).not.toBe(slotOf('stock'));
    const refused = expect(backend.acquire(acquisition('order'))).rejects.toMatchObject({ outcome: 'refused' });
    const silent = await next('eval');
    silent.socket = {};
    silent.idleSinceWrite = COMMAND_TIMEOUT;
    const other = backend.acquire(acquisition('stock'));
    (await next('eval')).answer(TIME);
    (await next('evalsha')).answer([0, 1, 0]);
    await other.catch(() => {});
    await runtime.until(refused);
    expect(silent.destroyed).toBe(true);
    await backend.close();
  });
});
