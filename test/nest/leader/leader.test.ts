import { Controller, Inject, Injectable, Module, Scope } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { LockConfigurationError } from '../../../lib/engine/errors.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { Leader } from '../../../lib/nest/leader/leader.decorator.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { until } from '../../support/until.js';
import { sharedMemory, startApp } from '../support/start-app.js';

/** Settles when the signal aborts. */
const ended = ({ signal }: Lease) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

@Injectable()
class Relay {
  readonly log: string[] = [];
  lease: Lease | undefined;

  @Leader('outbox')
  async relay(lease: Lease) {
    this.lease = lease;
    this.log.push(`elected ${currentLease('outbox') === lease}`);
    await ended(lease);
    this.log.push(`ended by ${(lease.signal.reason as Error).name}`);
  }

  onModuleDestroy() {
    this.log.push('destroyed');
  }

  beforeApplicationShutdown() {
    this.log.push(`before shutdown`);
  }

  onApplicationShutdown() {
    this.log.push('shutdown');
  }
}

@Injectable()
class Heir extends Relay {}

@Injectable()
class Override extends Relay {
  override async relay() {
    this.log.push('called');
  }
}

@Controller()
class Board {
  elected = 0;

  @Leader({ name: 'board' })
  async lead(lease: Lease) {
    this.elected++;
    await ended(lease);
  }
}

class Plain {
  elected = 0;

  @Leader({ name: 'plain', service: 'billing' })
  async lead(lease: Lease) {
    this.elected++;
    await ended(lease);
  }
}

describe('@Leader', () => {
  it('warns of two methods with the same name, naming both', async () => {
    @Injectable()
    class Copied {
      @Leader('copied')
      async one(lease: Lease) {
        await ended(lease);
      }

      @Leader('copied')
      async other(lease: Lease) {
        await ended(lease);
      }
    }
    const warnings: string[] = [];
    const logger = { warn: (message: string) => warnings.push(message), error: () => {} };
    const app = await startApp({ providers: [Copied] }, { ...sharedMemory()(), logger });
    await app.close();
    expect(warnings.filter((warning) => warning.includes('@Leader'))).toEqual([
      expect.stringMatching(/^Copied.other and Copied.one both have @Leader with the name 'copied'/),
    ]);
  });

  it('runs in one application of several, from its start to its shutdown', async () => {
    const options = sharedMemory();
    const apps = await Promise.all([1, 2, 3].map(() => startApp({ providers: [Relay] }, options())));
    const relays = apps.map((app) => app.get(Relay));
    await until(() => relays.some(({ log }) => log.length > 0));
    expect(relays.flatMap(({ log }) => log)).toEqual(['elected true']);
    for (let n = 0; n < 3; n++) {
      await until(() => relays.some(({ log }) => log.at(-1) === 'elected true'));
      const leader = relays.findIndex(({ log }) => log.at(-1) === 'elected true');
      await apps[leader].close();
      const { log } = relays[leader];
      expect(log.filter((line) => line !== 'before shutdown')).toEqual([
        'elected true',
        'destroyed',
        'ended by LockAbortedError',
        'shutdown',
      ]);
    }
  });

  it('works on inherited methods and controllers, with other services, and on instances of factories', async () => {
    const app = await startApp({
      imports: [RedisLockModule.forRoot({ name: 'billing', backend: 'memory', shutdownTimeout: 10 })],
      providers: [Heir, { provide: Plain, useFactory: () => new Plain() }],
      controllers: [Board],
    });
    const [heir, board, plain] = [app.get(Heir), app.get(Board), app.get(Plain)];
    await until(() => heir.log.length + board.elected + plain.elected === 3);
    const { owners } = await app.locks.inspect('outbox');
    expect(owners).toMatchObject([{ mine: true, client: { method: 'Relay.relay', group: 'outbox' } }]);
    await app.close();
  });

  it('does not run an override that has no decorator', async () => {
    const app = await startApp({ providers: [Override, Board] });
    await until(() => app.get(Board).elected === 1);
    expect(app.get(Override).log).toEqual([]);
    await app.close();
  });

  it('runs once for a provider that several modules share', async () => {
    @Module({ providers: [Board], exports: [Board] })
    class Shared {}
    @Module({ imports: [Shared], providers: [{ provide: 'alias', useExisting: Board }] })
    class User {}
    const app = await startApp({ imports: [Shared, User] });
    await until(() => app.get(Board, { strict: false }).elected === 1);
    await app.close();
    expect(app.get(Board, { strict: false }).elected).toBe(1);
  });

  it('does not run where a test replaces the service by a mock', async () => {
    const app = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ backend: 'memory' })],
      providers: [Relay],
    })
      .overrideProvider(LockService)
      .useValue({ withLock: async () => {} })
      .compile();
    await app.init();
    expect(app.get(Relay).log).toEqual([]);
    await app.close();
  });

  it('stops the start of an application without a RedisLockModule', async () => {
    const compiled = Test.createTestingModule({ providers: [Board] }).compile();
    await expect(compiled).rejects.toThrow(/import RedisLockModule/);
  });

  it.each([Scope.REQUEST, Scope.TRANSIENT])('stops the start with a provider of scope %s', async (scope) => {
    @Injectable({ scope })
    class Many {
      @Leader('many')
      async lead() {}
    }
    @Injectable()
    class User {
      constructor(@Inject(Many) readonly many: Many) {}
    }
    const started = startApp({ providers: [Many, User] });
    await expect(started).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(started).rejects.toThrow(/^Many\.lead: @Leader needs a provider that exists once/);
  });

  it.each([
    [undefined, /^Bad\.lead: @Leader needs the name of a lock/],
    ['', /needs the name of a lock/],
    [{ name: 'x', leaseTime: 5 }, /there is|has no option 'leaseTime'/],
  ])('refuses %j when the class is defined', (options, message) => {
    expect(() => {
      class Bad {
        @Leader(options as never)
        async lead() {}
      }
      return Bad;
    }).toThrow(message);
  });

  it('is not compiled on a method that gives no promise, or takes something else', () => {
    class Types {
      // @ts-expect-error: a leadership lasts as long as a promise
      @Leader('a')
      sync(): void {}

      // @ts-expect-error: it is given a lease
      @Leader('b')
      async other(_id: string): Promise<void> {}
    }
    expect(new Types()).toBeDefined();
  });

  it('is elected in a module that is loaded lazily', async () => {
    @Module({ providers: [Relay] })
    class Late {}
    const app = await startApp({});
    const module = await app.get(LazyModuleLoader).load(() => Late);
    const relay = module.get(Relay);
    await until(() => relay.log.length === 1);
    expect(relay.log).toEqual(['elected true']);
    await app.close();
    expect(relay.log).toContain('ended by LockAbortedError');
  });

  it('is refused in a lazily loaded module on a request-scoped provider', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest {
      @Leader('outbox')
      async relay(lease: Lease) {
        await ended(lease);
      }
    }
    @Module({ providers: [PerRequest] })
    class Late {}
    const app = await startApp({});
    const module = await app.get(LazyModuleLoader).load(() => Late);
    await expect(module.resolve(PerRequest)).rejects.toThrow(/@Leader needs a provider that exists once/);
    await app.close();
  });

  it.each([Scope.REQUEST, Scope.TRANSIENT])(
    'is refused on the instances of a factory that makes many of them, scope %i',
    async (scope) => {
      const app = await startApp({ providers: [{ provide: Relay, scope, useFactory: () => new Relay() }] });
      for (let request = 0; request < 2; request++)
        await expect(app.resolve(Relay)).rejects.toThrow(/@Leader needs a provider that exists once/);
      expect(await app.locks.isLocked('outbox')).toBe(false);
      await app.close();
    },
  );

  it('is refused in the array of a factory', async () => {
    const factory = { provide: 'relays', useFactory: () => [new Relay()] };
    await expect(startApp({ providers: [factory] })).rejects.toThrow(/@Leader needs a provider that exists once/);
  });

  it('stops the start of an application that injects an instance of a transient factory', async () => {
    @Injectable()
    class User {
      constructor(readonly relay: Relay) {}
    }
    const transient = { provide: Relay, scope: Scope.TRANSIENT, useFactory: () => new Relay() };
    await expect(startApp({ providers: [User, transient] })).rejects.toThrow(
      /@Leader needs a provider that exists once/,
    );
  });
});
