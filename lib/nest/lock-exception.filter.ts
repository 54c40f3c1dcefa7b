import { type ArgumentsHost, Catch, type ExceptionFilter, Logger, Optional } from '@nestjs/common';
import { throwError } from 'rxjs';
import {
  LockAbortedError,
  LockBusyError,
  LockConfigurationError,
  LockDeadlockError,
  LockKeyError,
  LockSupersededError,
  LockUnavailableError,
} from '../engine/errors.js';
import { RefusalLog } from './refusal-log.js';

/** Options of {@link LockExceptionFilter}. @publicApi */
export interface LockExceptionFilterOptions {
  /** The HTTP status for a lock that stayed busy, and for a deadlock. Default: 423 Locked. */
  readonly busy?: number;
  /** The HTTP status for a call that a later one has superseded. Default: 409 Conflict. */
  readonly superseded?: number;
  /** The HTTP status for a Redis that does not answer, and for a shutdown. Default: 503 Service Unavailable. */
  readonly unavailable?: number;
  /** The HTTP status for a request from which no lock name can be made. Default: 400 Bad Request. */
  readonly badKey?: number;
}

type Refusal = LockAbortedError | LockBusyError | LockDeadlockError | LockKeyError | LockUnavailableError;

/**
 * Sends a response to a client whose handler did not get its lock, because the lock stayed busy, Redis did not answer,
 * the application is shutting down, there was a deadlock, or no lock name can be made from the request, such as
 * `sku:undefined`. It works on any transport. The response never contains the lock's name or its holder:
 *
 * - HTTP (Express, Fastify): 423 Locked, 503 Service Unavailable if Redis does not answer or the application is shutting
 *   down, or 400 Bad Request if there is no name, in NestJS's format. If a caller of this process holds the lock with a fixed lease, `Retry-After` is the
 *   remaining time of that lease. Otherwise it is 1 to 3 seconds at random, so that clients do not all retry at once.
 *   A call that a later one has superseded (`newest`) gets 409 Conflict without `Retry-After`, because it need not try
 *   again;
 * - GraphQL, and transports that are not named here: an error with a general message and `extensions.code` `'LOCKED'`,
 *   `'SUPERSEDED'`, `'UNAVAILABLE'` or `'BAD_REQUEST'`;
 * - microservices: the error `{ status: 'error', code, message }` with the same codes. The lock's name is logged,
 *   because the sender of an event gets no response;
 * - WebSockets (Socket.IO and `@nestjs/platform-ws`): the event `exception` with the same content.
 *
 * ```ts
 * @UseFilters(LockExceptionFilter)                                           // a handler or a controller
 * providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }]        // all of them
 * app.useGlobalFilters(new LockExceptionFilter({ busy: 409 }));              // other statuses
 * ```
 *
 * A deadlock is logged as a warning, because it is a defect in the code, even though the client may try again. If Redis
 * does not answer, the reason is logged. One line every 10 s stands for all requests that were refused for one reason.
 * Nothing is logged for a call whose own `signal` has ended its wait, such as that
 * of a client that has gone; its response is 503. If something else is stored under the lock's name, that is not the client's
 * fault: it is logged as an error, and the response is 500. A response that has begun is ended.
 *
 * @throws LockConfigurationError from the constructor for a status that is not an HTTP error
 * @publicApi
 */
@Catch(LockAbortedError, LockBusyError, LockDeadlockError, LockKeyError, LockUnavailableError)
export class LockExceptionFilter implements ExceptionFilter<Refusal> {
  private static readonly logger = new Logger(LockExceptionFilter.name);
  private static readonly log = new RefusalLog(LockExceptionFilter.logger);
  private readonly busy: Answer;
  private readonly superseded: Answer;
  private readonly unavailable: Answer;
  private readonly badKey: Answer;

  constructor(@Optional() options?: LockExceptionFilterOptions) {
    const { busy = 423, superseded = 409, unavailable = 503, badKey = 400 } = options ?? {};
    this.busy = { ...BUSY, statusCode: toStatus(busy, 'busy') };
    this.superseded = { ...SUPERSEDED, statusCode: toStatus(superseded, 'superseded') };
    this.unavailable = { ...UNAVAILABLE, statusCode: toStatus(unavailable, 'unavailable') };
    this.badKey = { ...BAD_KEY, statusCode: toStatus(badKey, 'badKey') };
  }

  catch(refusal: Refusal, host: ArgumentsHost): unknown {
    const transport = host.getType<string>();
    const answer = this.answerTo(refusal);
    const isFailure = refusal instanceof LockUnavailableError || answer === INTERNAL;
    // The sender of an event gets no response, so its line is the only trace of it.
    if (transport === 'rpc') LockExceptionFilter.logger[isFailure ? 'error' : 'warn'](refusal.message);
    else if (isFailure) LockExceptionFilter.log.write('error', refusal);
    else if (refusal instanceof LockDeadlockError || isByShutdown(refusal))
      LockExceptionFilter.log.write('warn', refusal);
    switch (transport) {
      case 'http':
        return respond(refusal, answer, host.switchToHttp().getResponse<Response>());
      case 'rpc':
        return throwError(() => messageOf(answer));
      case 'ws':
        return emitTo(host.switchToWs().getClient<Socket>(), answer);
      default:
        throw Object.assign(new Error(answer.message), { extensions: { code: answer.code } });
    }
  }

  private answerTo(refusal: Refusal): Answer {
    if (refusal instanceof LockUnavailableError) return this.unavailable;
    // Without a cause, it is the reason why a body was told to stop, which has run.
    if (refusal instanceof LockAbortedError)
      return refusal.byShutdown || 'cause' in refusal ? this.unavailable : INTERNAL;
    if (refusal instanceof LockSupersededError) return this.superseded;
    if (!(refusal instanceof LockKeyError)) return this.busy;
    // With a cause, it is about what Redis has under the name.
    return refusal.cause === undefined ? this.badKey : INTERNAL;
  }
}

/** The answer to a client. */
interface Answer {
  readonly statusCode: number;
  /** The name of the default status. */
  readonly error: string;
  readonly code: string;
  readonly message: string;
  /** Whether the client may try again. */
  readonly mayRetry?: true;
}

const BUSY: Omit<Answer, 'statusCode'> = {
  error: 'Locked',
  code: 'LOCKED',
  message: 'Somebody else is working on this right now, try again later',
  mayRetry: true,
};
const SUPERSEDED: Omit<Answer, 'statusCode'> = {
  error: 'Conflict',
  code: 'SUPERSEDED',
  message: 'A later request is served in place of this one',
};
const UNAVAILABLE: Omit<Answer, 'statusCode'> = {
  error: 'Service Unavailable',
  code: 'UNAVAILABLE',
  message: 'This cannot be done right now, try again later',
  mayRetry: true,
};

const BAD_KEY: Omit<Answer, 'statusCode'> = {
  error: 'Bad Request',
  code: 'BAD_REQUEST',
  message: 'A value that this request needs is missing or invalid',
};
const INTERNAL: Answer = {
  statusCode: 500,
  error: 'Internal Server Error',
  code: 'INTERNAL_SERVER_ERROR',
  message: 'Internal server error',
};

/** What this filter uses of a response of Node.js. */
interface RawResponse {
  readonly headersSent?: boolean;
  readonly writableEnded?: boolean;
  end?(): unknown;
}

/** What the response of Express and the reply of Fastify have in common. */
interface Response extends RawResponse {
  /** Fastify's. */
  readonly raw?: RawResponse;
  readonly sent?: boolean;
  header(name: string, value: string): unknown;
  status(code: number): { send(body: unknown): unknown };
}

/** What a socket of Socket.IO has, and a plain WebSocket (`@nestjs/platform-ws`). */
interface Socket {
  readonly readyState?: number;
  send?(text: string): unknown;
  emit?(event: string, message: unknown): unknown;
}

/** The longest `Retry-After` that is chosen at random, in seconds. */
const LONGEST_RANDOM_DELAY = 3;

function messageOf({ code, message }: Answer): { status: string; code: string; message: string } {
  return { status: 'error', code, message };
}

function emitTo(socket: Socket, answer: Answer): void {
  // A plain WebSocket also has `emit`, but it reaches only listeners in this process.
  const isPlain = typeof socket.readyState === 'number';
  if (isPlain) socket.send?.(JSON.stringify({ event: 'exception', data: messageOf(answer) }));
  else socket.emit?.('exception', messageOf(answer));
}

function respond(refusal: Refusal, answer: Answer, response: Response): void {
  const raw = response.raw ?? response;
  // NestJS's filter does the same. Otherwise the client would wait for the rest.
  if (raw.headersSent) {
    if (raw.writableEnded === false) raw.end?.();
    return;
  }
  if (response.sent) return;
  const { statusCode, message, error, mayRetry } = answer;
  if (mayRetry) response.header('Retry-After', String(retryAfter(refusal)));
  response.status(statusCode).send({ statusCode, message, error });
}

function isByShutdown(refusal: Refusal): boolean {
  return refusal instanceof LockAbortedError && refusal.byShutdown;
}

function retryAfter(error: Refusal): number {
  if (error instanceof LockBusyError && error.fixedLease && error.remainingTime >= 0)
    return Math.max(1, Math.ceil(error.remainingTime / 1000));
  return Math.ceil(Math.random() * LONGEST_RANDOM_DELAY) || 1;
}

function toStatus(status: number, option: string): number {
  if (Number.isInteger(status) && status >= 400 && status <= 599) return status;
  throw new LockConfigurationError(`LockExceptionFilter: ${option} is ${status}; it must be a status from 400 to 599`);
}
