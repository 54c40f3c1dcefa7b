import { Injectable } from '@nestjs/common';
import { LockBusyError } from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { until } from '../../support/until.js';
import { startApp } from '../support/start-app.js';

@Injectable()
class Reports {
  readonly ran: string[] = [];
  readonly region = 'eu';

  @DistributedLock({ key: 'report', waitTime: '10ms' })
  async impatient() {
    this.ran.push('impatient');
  }

  @DistributedLock({ key: 'report', waitTime: 0, onBusy: 'throw' })
  async throwing() {
    this.ran.push('throwing');
  }

  @DistributedLock({ key: 'report', onBusy: 'skip' })
  async skipping(): Promise<string | undefined> {
    this.ran.push('skipping');
    return 'done';
  }

  @DistributedLock({ key: 'report', onBusy: 'skip', waitTime: '1m' })
  async skippingLater(): Promise<string | undefined> {
    return 'done';
  }

  @DistributedLock({
    key: 'report',
    onBusy(this: Reports, busy: LockBusyError, id: string) {
      return `${this.region}: ${id} is busy, ${busy.lockName}`;
    },
  })
  async answering(id: string) {
    return `built ${id}`;
  }

  @DistributedLock({
    key: 'report',
    onBusy(this: Reports, busy, id) {
      return this.lastReport(busy, id);
    },
  })
  async delegating(id: string) {
    return `built ${id}`;
  }

  async lastReport(busy: LockBusyError, id: string) {
    return `${this.region}: last ${id}, ${busy instanceof LockBusyError}`;
  }

  @DistributedLock({
    key: 'report',
    onBusy: () => {
      throw new RangeError('mine');
    },
  })
  async refusing() {}

  @DistributedLock({ key: 'outer', onBusy: 'skip' })
  async nesting(): Promise<string | undefined> {
    await this.throwing();
    return 'not reached';
  }
}

describe('onBusy', () => {
  let app: Awaited<ReturnType<typeof startApp>>;
  let reports: Reports;
  beforeAll(async () => {
    app = await startApp({ providers: [Reports] });
    reports = app.get(Reports);
  });
  afterAll(() => app.close());

  describe('while somebody else holds the lock', () => {
    let lease: Lease;
    beforeEach(async () => {
      reports.ran.length = 0;
      lease = await app.locks.acquire('report');
    });
    afterEach(async () => {
      await lease.release();
      expect(reports.ran).toEqual([]);
      expect((await app.locks.inspect('report')).waiting).toBe(0);
    });

    it.each(['impatient', 'throwing'] as const)(
      'throws LockBusyError with what is known of the holder (%s)',
      async (method) => {
        const busy: LockBusyError = await reports[method]().then(
          () => undefined as never,
          (error) => error,
        );
        expect(busy).toBeInstanceOf(LockBusyError);
        expect(busy).toMatchObject({ name: 'LockBusyError', lockName: 'report', holder: lease.owner });
        expect(busy.remainingTime).toBeGreaterThan(0);
        expect(busy.remainingTime).toBeLessThanOrEqual(30_000);
      },
    );

    it("gives undefined for 'skip', at once", async () => {
      expect(await reports.skipping()).toBeUndefined();
    });

    it("waits first when 'skip' comes with a waitTime", async () => {
      const result = reports.skippingLater();
      await until(async () => (await app.locks.inspect('report')).waiting === 1);
      await lease.release();
      expect(await result).toBe('done');
    });

    it('gives the answer of a function, which gets the error, the arguments and the instance', async () => {
      expect(await reports.answering('r1')).toBe('eu: r1 is busy, report');
    });

    it('gives the answer of a method by its name', async () => {
      expect(await reports.delegating('r1')).toBe('eu: last r1, true');
    });

    it('passes the error of an answer on', async () => {
      await expect(reports.refusing()).rejects.toThrow(new RangeError('mine'));
    });

    it('does not answer for a LockBusyError that the body throws', async () => {
      await expect(reports.nesting()).rejects.toMatchObject({ name: 'LockBusyError', lockName: 'report' });
    });
  });

  it('is not asked when the lock is free', async () => {
    expect(await reports.skipping()).toBe('done');
    expect(await reports.answering('r1')).toBe('built r1');
    expect(await reports.delegating('r1')).toBe('built r1');
  });

  it('answers when the lock is refused because the application shuts down', async () => {
    await app.close();
    expect(await reports.skipping()).toBeUndefined();
    expect(await reports.answering('r1')).toBe('eu: r1 is busy, report');
  });
});
