import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { currentLease, DistributedLock, LockService } from 'nestjs-redis-lock';
import { REPLICA } from '../config/replica.js';
import { StockService } from '../stock/stock.service.js';

const LOCK = 'report:nightly';

export interface Report {
  readonly at: number;
  readonly replica: string;
  readonly articles: number;
  readonly pieces: number;
}

/** Counts the stock every night. Every replica has the cron job; one of them runs it. */
@Injectable()
export class NightlyReportService implements OnModuleDestroy {
  /** The reports that this replica made, and the times at which it left the job to another one. */
  readonly reports: Report[] = [];
  readonly skipped: number[] = [];
  private readonly logger = new Logger(NightlyReportService.name);
  private readonly stopListening: () => void;

  constructor(
    private readonly stock: StockService,
    locks: LockService,
  ) {
    this.stopListening = locks.on('busy', ({ name }) => {
      if (name === LOCK) this.skipped.push(Date.now());
    });
  }

  // With holdAtLeast, a replica whose clock is up to a second behind still finds the lock taken when the report is long
  // finished.
  @Cron(process.env.REPORT_CRON || CronExpression.EVERY_DAY_AT_3AM)
  @DistributedLock({ key: LOCK, onBusy: 'skip', holdAtLeast: '1s' })
  async run(): Promise<void> {
    const at = Date.now();
    const quantities = Object.values(await this.stock.all());
    const pieces = quantities.reduce((sum, quantity) => sum + quantity, 0);
    this.reports.push({ at, replica: REPLICA, articles: quantities.length, pieces });
    this.logger.log(
      `${pieces} pieces of ${quantities.length} articles (fencing token ${currentLease()?.fencingToken})`,
    );
  }

  onModuleDestroy(): void {
    this.stopListening();
  }
}
