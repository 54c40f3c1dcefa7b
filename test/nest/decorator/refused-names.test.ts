import { Injectable } from '@nestjs/common';
import { LockKeyError } from '../../../lib/engine/errors.js';
import type { LockEvents } from '../../../lib/engine/events/lock-events.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { SingleFlight } from '../../../lib/nest/decorator/single-flight.decorator.js';
import { RecordingLogger } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';
import { startApp } from '../support/start-app.js';

interface Order {
  readonly id?: string;
}

@Injectable()
class Orders {
  @DistributedLock('order:#<args[0].id>')
  async ship(_order: Order) {}

  @SingleFlight({ key: 'price:#<args[0].id>', keepFor: '1s' })
  async price(_order: Order): Promise<number> {
    return 1;
  }

  @DistributedLock(() => {
    throw new TypeError('of the function');
  })
  async cancel() {}
}

describe('a call for which a key makes no name', () => {
  const open = async () => {
    const logger = new RecordingLogger();
    const app = await startApp({ providers: [Orders] }, { backend: 'memory', logger, shutdownTimeout: 10 });
    const failures: LockEvents['failed'][] = [];
    app.locks.on('failed', (event) => failures.push(event));
    return { app, logger, failures, orders: app.get(Orders) };
  };

  it.each(['ship', 'price'] as const)(
    'is refused with an event, and once in the log of its method: %s',
    async (method) => {
      const { app, logger, failures, orders } = await open();
      for (let n = 0; n < 3; n++) expect(await errorOf(orders[method]({}))).toBeInstanceOf(LockKeyError);
      expect(failures).toMatchObject(
        Array.from({ length: 3 }, () => ({ name: '', names: [], method: `Orders.${method}`, outcome: 'refused' })),
      );
      expect(failures[0].error).toBeInstanceOf(LockKeyError);
      const [line, ...others] = logger.warnings.filter((warning) => warning.includes('did not run'));
      expect([line, others]).toEqual([expect.stringContaining(`Orders.${method}: #<args[0].id> of the key`), []]);
      await app.close();
    },
  );

  it('fails with what its key function has thrown, without an event', async () => {
    const { app, logger, failures, orders } = await open();
    expect(await errorOf(orders.cancel())).toBeInstanceOf(TypeError);
    expect([failures, logger.warnings]).toEqual([[], []]);
    await app.close();
  });
});
