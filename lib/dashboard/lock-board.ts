import { HttpException, type LoggerService, type OnModuleDestroy, ServiceUnavailableException } from '@nestjs/common';
import type { LockService } from '../service/lock-service.js';
import type { Snapshot } from './board-lock.js';
import { BoardUpdates, boardMessage } from './board-message.js';
import type { BoardQuery } from './board-query.js';
import type { RedisLockDashboardOptions } from './dashboard.options.js';
import { ForcedRelease } from './forced-release.js';
import { EventStream, type HttpRequest, type HttpResponse } from './http.js';
import { RecentEvents } from './recent-events.js';
import { SnapshotFeed } from './snapshot-feed.js';
import { takeSnapshot } from './take-snapshot.js';

/** A viewer hears something this often, in milliseconds, also when nothing changes or Redis does not answer. */
const SIGN_OF_LIFE = 3_000;
/** A stream is ended after so long; the page opens a new one, and the guards are asked again. */
const LONGEST_STREAM = 5 * 60_000;
/** So many viewers have a stream at once, as each costs memory and time; the pages of others ask every two seconds. */
const MOST_STREAMS = 100;
const STATUS_OF: Readonly<Record<string, number>> = {
  LockKeyError: 400,
  LockConfigurationError: 400,
  LockUnavailableError: 503,
};

/** What one dashboard shows, and its viewers. */
export class LockBoard implements OnModuleDestroy {
  private readonly events: RecentEvents;
  private readonly feed: SnapshotFeed;
  private readonly releases: ForcedRelease;
  private readonly streams = new Set<EventStream>();
  private readonly readOnly: boolean;
  private closed = false;

  constructor(
    locks: LockService,
    logger: LoggerService,
    options: Pick<RedisLockDashboardOptions, 'readOnly' | 'userOf'>,
  ) {
    this.readOnly = options.readOnly !== false;
    this.events = new RecentEvents(locks);
    this.feed = new SnapshotFeed((before) => takeSnapshot(locks, before));
    this.releases = new ForcedRelease(locks, this.events, logger, options);
  }

  async show(query: BoardQuery) {
    return this.message(await this.feed.current(), query);
  }

  /**
   * Sends what `query` asks for, and then what changes, until the viewer goes.
   *
   * @throws ServiceUnavailableException when there are too many viewers, or the application is shutting down
   */
  stream(response: HttpResponse, query: BoardQuery): void {
    if (this.closed) throw new ServiceUnavailableException('The application is shutting down');
    if (this.streams.size >= MOST_STREAMS)
      throw new ServiceUnavailableException(
        `There are ${MOST_STREAMS} streams already: ask for api/board now and then`,
      );
    const stream = new EventStream(response);
    const updates = new BoardUpdates();
    const show = (snapshot: Snapshot) => {
      if (stream.isReady) stream.send(updates.next(this.message(snapshot, query)));
    };
    const stop = this.feed.follow(show);
    const life = setInterval(() => {
      if (stream.isReady) stream.send(JSON.stringify({ now: Date.now() }));
    }, SIGN_OF_LIFE);
    const leave = () => {
      this.streams.delete(stream);
      clearInterval(life);
      clearTimeout(end);
      stop();
    };
    // A viewer that has stopped to read is left, too: its connection may be there for long.
    const end = setTimeout(() => {
      leave();
      stream.end();
    }, LONGEST_STREAM);
    this.streams.add(stream);
    stream.onClose(leave);
  }

  /** @throws HttpException that says why nothing was released */
  async release(request: HttpRequest, name?: string): Promise<void> {
    try {
      await this.releases.release(request, name);
    } catch (error) {
      if (error instanceof HttpException) throw error;
      const { name: type, message } = error as Error;
      throw new HttpException(message, STATUS_OF[type] ?? 500, { cause: error });
    }
  }

  /** An open stream would keep the server from closing. */
  onModuleDestroy(): void {
    this.closed = true;
    this.feed.close();
    this.events.close();
    for (const stream of this.streams) stream.end();
  }

  private message(snapshot: Snapshot, query: BoardQuery) {
    return boardMessage(snapshot, this.events.all, query, this.readOnly);
  }
}
