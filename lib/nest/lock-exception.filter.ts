import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import { throwError } from 'rxjs';
import { LockBusyError, LockDeadlockError } from '../engine/errors.js';

/**
 * Answers a client whose handler met a busy lock, or was the one that a deadlock was ended with, on any transport. The answer names neither the lock nor its holder:
 *
 * - HTTP (Express, Fastify): 423 Locked, in NestJS's form. `Retry-After` is what is left of the lease where a caller of this process
 *   holds the lock with a fixed lease; otherwise 1 to 3 seconds at random, so that clients do not all come back at once;
 * - GraphQL, and transports that are not named here: an error with a general message and `extensions.code` `'LOCKED'`;
 * - microservices: the error `{ status: 'error', code: 'LOCKED', message }`. The lock's name is logged, because the sender of an event
 *   gets no answer;
 * - WebSockets (Socket.IO and `@nestjs/platform-ws`): the event `exception` with the same content.
 *
 * ```ts
 * @UseFilters(LockExceptionFilter)                                           // a handler or a controller
 * providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }]        // all of them
 * ```
 *
 * A deadlock is logged: it is a fault of the code, although the client may try again.
 *
 * Other errors of this library are not caught: that Redis does not answer (LockUnavailableError) is a fault to be logged, not something
 * to tell the client.
 *
 * @publicApi
 */
@Catch(LockBusyError, LockDeadlockError)
export class LockExceptionFilter implements ExceptionFilter<LockBusyError | LockDeadlockError> {
  private static readonly logger = new Logger(LockExceptionFilter.name);

  catch(busy: LockBusyError | LockDeadlockError, host: ArgumentsHost): unknown {
    const transport = host.getType<string>();
    if (busy instanceof LockDeadlockError || transport === 'rpc') LockExceptionFilter.logger.warn(busy.message);
    switch (transport) {
      case 'http':
        return answer(busy, host.switchToHttp().getResponse<Response>());
      case 'rpc':
        return throwError(() => LOCKED_MESSAGE);
      case 'ws':
        return tell(host.switchToWs().getClient<Socket>());
      default:
        throw Object.assign(new Error(MESSAGE), { extensions: { code: CODE } });
    }
  }
}

/** What the response of Express and the reply of Fastify have in common. */
interface Response {
  readonly headersSent?: boolean;
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

const LOCKED = 423;
const CODE = 'LOCKED';
const MESSAGE = 'Somebody else is working on this right now, try again later';
const LOCKED_MESSAGE = { status: 'error', code: CODE, message: MESSAGE };

/** The longest `Retry-After` that is chosen at random, in seconds. */
const LONGEST_RANDOM_DELAY = 3;

function tell(socket: Socket): void {
  // A plain WebSocket has an `emit` too, but that reaches only listeners in this process.
  const isPlain = typeof socket.readyState === 'number';
  if (isPlain) socket.send?.(JSON.stringify({ event: 'exception', data: LOCKED_MESSAGE }));
  else socket.emit?.('exception', LOCKED_MESSAGE);
}

function answer(busy: LockBusyError | LockDeadlockError, response: Response): void {
  if (response.headersSent || response.sent) return;
  response.header('Retry-After', String(retryAfter(busy)));
  response.status(LOCKED).send({ statusCode: LOCKED, message: MESSAGE, error: 'Locked' });
}

function retryAfter(error: LockBusyError | LockDeadlockError): number {
  if (error instanceof LockBusyError && error.fixedLease && error.remainingTime >= 0)
    return Math.max(1, Math.ceil(error.remainingTime / 1000));
  return Math.ceil(Math.random() * LONGEST_RANDOM_DELAY) || 1;
}
