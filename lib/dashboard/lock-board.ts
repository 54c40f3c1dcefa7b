import { HttpException, type LoggerService, type OnModuleDestroy, ServiceUnavailableException } from '@nestjs/common';
import type { LockService } from '../core.js';
import type { BoardQuery } from './board-query.js';
import type { BoardPlace } from './board-snapshot.js';
import { BoardUpdates, wholeText } from './board-updates.js';
import { type BoardMessage, BoardView } from './board-view.js';
import type { RedisLockDashboardOptions } from './dashboard.options.js';
import { ForcedRelease } from './forced-release.js';
import { EventStream, type HttpRequest, type HttpResponse } from './http.js';
import { RecentEvents } from './recent-events.js';
import { SnapshotFeed } from './snapshot-feed.js';
import { takeSnapshot } from './take-snapshot.js';
import { TimeSlices } from './time-slices.js';

/**
 * The longest time between two messages to a viewer, in milliseconds, even if nothing changes or Redis does not answer.
 */
const SIGN_OF_LIFE = 3_000;
/** How long a stream lasts. The page then opens a new one, and the guards are asked again. */
const LONGEST_STREAM = 5 * 60_000;
/**
 * How many viewers can have a stream at once, because each stream costs memory and time. Further pages poll every two
 * seconds.
 */
const MOST_STREAMS = 100;
const STATUS_OF: Readonly<Record<string, number>> = {
  LockKeyError: 400,
  LockConfigurationError: 400,
  LockUnavailableError: 503,
};

/** The content of one dashboard, and its viewers. */
export class LockBoard implements OnModuleDestroy {
  private readonly events: RecentEvents;
  private readonly feed: SnapshotFeed;
  private readonly releases: ForcedRelease;
  private readonly streams = new Set<EventStream>();
  private readonly readOnly: boolean;
  private readonly place: BoardPlace;
  private readonly slices = new TimeSlices();
  private view: BoardView | undefined;
  /**
   * Settles when all present viewers have been served. They are served one after another, because they share the time
   * slices.
   */
  private served: Promise<unknown> = Promise.resolve();
  private closed = false;

  constructor(
    locks: LockService,
    logger: LoggerService,
    options: Pick<RedisLockDashboardOptions, 'readOnly' | 'userOf' | 'environment' | 'origin'>,
  ) {
    this.readOnly = options.readOnly !== false;
    this.place = { ...locks.place, environment: options.environment ?? '' };
    this.events = new RecentEvents(locks);
    this.feed = new SnapshotFeed((before) => takeSnapshot(locks, before));
    this.releases = new ForcedRelease(locks, this.events, logger, options);
  }

  /** Whether the application is shutting down. */
  get isClosed(): boolean {
    return this.closed;
  }

  /** @returns the complete data for a query, as JSON */
  async show(query: BoardQuery): Promise<string> {
    await this.feed.current();
    return this.serve(async () => wholeText(await this.message(query)));
  }

  /**
   * Sends the data for `query`, and then the changes, until the viewer leaves.
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
    let isExpected = false;
    const show = () => {
      // If it takes long to serve all viewers, each gets only the newest snapshot.
      if (isExpected) return;
      isExpected = true;
      this.serve(async () => {
        isExpected = false;
        if (!stream.isReady) return;
        const message = await this.message(query);
        if (stream.isReady) stream.send(updates.next(message));
      }).catch(() => stream.end());
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
    // A viewer that has stopped reading is disconnected too, because its connection may stay open for long.
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

  /** Ends all streams, because an open stream would prevent the server from closing. */
  onModuleDestroy(): void {
    this.closed = true;
    this.feed.close();
    this.events.close();
    for (const stream of this.streams) stream.end();
  }

  /** The data of the latest snapshot for a query. */
  private message(query: BoardQuery): Promise<BoardMessage> {
    const { latest } = this.feed;
    if (this.view?.snapshot !== latest) this.view = new BoardView(latest, this.slices);
    const { readOnly, place, events } = this;
    return this.view.message(query, { readOnly, place, events });
  }

  /** Does the work for the viewers one after the other. */
  private serve<T>(work: () => Promise<T>): Promise<T> {
    const served = this.served.then(async () => {
      if (this.slices.isOver) await this.slices.next();
      return work();
    });
    this.served = served.catch(() => {});
    return served;
  }
}
