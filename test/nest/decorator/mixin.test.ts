import { mixin, type Type } from '@nestjs/common';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { SingleFlight } from '../../../lib/nest/decorator/single-flight.decorator.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { Section } from '../support/section.js';
import { sharedMemory, startApp } from '../support/start-app.js';

interface Payouts {
  run(): Promise<unknown>;
}

/** What a module that uses mixins exports. Each process evaluates it, so each has a class of its own. */
type Factory = (section: Section) => Type<Payouts>;

class PayoutsBase {
  constructor(private readonly section: Section) {}

  @DistributedLock('#<class>.#<method>')
  run(): Promise<unknown> {
    return this.section.visit();
  }
}

const FACTORIES: readonly (readonly [string, string, Factory])[] = [
  [
    'declares the method',
    'PayoutsMixin.run',
    (section) => {
      class PayoutsMixin {
        @DistributedLock('#<class>.#<method>')
        run(): Promise<unknown> {
          return section.visit();
        }
      }
      return mixin(PayoutsMixin);
    },
  ],
  [
    'declares a single flight',
    'PayoutsMixin.run',
    (section) => {
      class PayoutsMixin {
        @SingleFlight('#<class>.#<method>')
        async run(): Promise<null> {
          await section.visit();
          return null;
        }
      }
      return mixin(PayoutsMixin);
    },
  ],
  [
    'inherits the method',
    'PayoutsBase.run',
    (section) => {
      class PayoutsMixin extends PayoutsBase {
        constructor() {
          super(section);
        }
      }
      return mixin(PayoutsMixin);
    },
  ],
  [
    'inherits the method from another mixin',
    'Inner.run',
    (section) => {
      class Inner {
        @DistributedLock('#<class>.#<method>')
        run(): Promise<unknown> {
          return section.visit();
        }
      }
      class Outer extends mixin(Inner) {}
      return mixin(Outer);
    },
  ],
];

describe("a template with #<class> in a class from Nest's mixin()", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const inMemory = sharedMemory();
  const onRedis = () => ({ connection: redis.url, shutdownTimeout: 10 });

  describe.each([
    ['in memory', inMemory],
    ['on Redis', onRedis],
  ])('%s', (_, options) => {
    it.each(FACTORIES)('is the same lock in every process, if the class %s', async (_, expected, factory) => {
      const section = new Section();
      const classes = [factory(section), factory(section)];
      expect(classes[0].name).not.toBe(classes[1].name);
      const apps = await Promise.all(classes.map((type) => startApp({ providers: [type] }, options())));
      try {
        const open = section.shut();
        const runs = apps.map((app, i) => app.get(classes[i]).run());
        await until(() => section.occupied);
        await until(async () => (await apps[0].locks.list()).locks.length > 0);
        const names = (await apps[0].locks.list()).locks.map(({ name }) => name);
        open();
        await Promise.all(runs);
        expect({ most: section.most, names }).toEqual({ most: 1, names: [expected] });
      } finally {
        await Promise.all(apps.map((app) => app.close()));
      }
    });
  });

  it('keeps the name of a class that is not from mixin(), also of a subclass', async () => {
    class WeeklyPayouts extends PayoutsBase {
      constructor() {
        super(new Section());
      }
    }
    const app = await startApp({ providers: [WeeklyPayouts] });
    const held: string[] = [];
    app.locks.on('acquired', ({ name }) => held.push(name));
    await app.get(WeeklyPayouts).run();
    expect(held).toEqual(['WeeklyPayouts.run']);
    await app.close();
  });
});
