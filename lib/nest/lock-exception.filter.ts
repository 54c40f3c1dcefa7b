import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import { throwError } from 'rxjs';
import { LockBusyError } from '../engine/errors.js';

/**
 * Answers a client whose handler met a busy lock, on any transport, and tells neither the lock's name nor who holds it:
 *
 * - HTTP (Express, Fastify): 423 Locked, in NestJS's form. `Retry-After` is the rest of the lease where that is fixed and of this
 *   process; else 1 to 3 seconds by chance, so that not all come back at once;
 * - GraphQL, and transports not named here: an error with a general message and `extensions.code` `'LOCKED'`;
 * - microservices: the error `{ status: 'error', code: 'LOCKED', message }`. The log has the name, because the sender of an event hears nothing;
 * - WebSockets: the event `exception` with the same.
 *
 * ```ts
 * @UseFilters(LockExceptionFilter)                                           // a handler or a controller
 * providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }]        // all of them
 * ```
 *
 * Other errors of this library are not caught: that Redis is away (LockUnavailableError) is a fault to be logged, not a state to tell
 * the client about.
 *
 * @publicApi
 */
@Catch(LockBusyError)
export class LockExceptionFilter implements ExceptionFilter<LockBusyError> {
  private static readonly logger = new Logger(LockExceptionFilter.name);

  catch(busy: LockBusyError, host: ArgumentsHost): unknown {
    switch (host.getType<string>()) {
      case 'http':
        return answer(busy, host.switchToHttp().getResponse<Response>());
      case 'rpc':
        LockExceptionFilter.logger.warn(busy.message);
        return throwError(() => LOCKED_MESSAGE);
      case 'ws':
        host.switchToWs().getClient<Socket>().emit?.('exception', LOCKED_MESSAGE);
        return undefined;
      default:
        throw Object.assign(new Error(MESSAGE), { extensions: { code: CODE } });
    }
  }
}

/** What Express's response and Fastify's reply have in common. */
interface Response {
  readonly headersSent?: boolean;
  readonly sent?: boolean;
  header(name: string, value: string): unknown;
  status(code: number): { send(body: unknown): unknown };
}

interface Socket {
  readonly emit?: (event: string, message: unknown) => unknown;
}

const LOCKED = 423;
const CODE = 'LOCKED';
const MESSAGE = 'Somebody else is working on this right now, try again later';
const LOCKED_MESSAGE = { status: 'error', code: CODE, message: MESSAGE };

/** Seconds. */
const LONGEST_GUESS = 3;

function answer(busy: LockBusyError, response: Response): void {
  if (response.headersSent || response.sent) return;
  response.header('Retry-After', String(retryAfter(busy)));
  response.status(LOCKED).send({ statusCode: LOCKED, message: MESSAGE, error: 'Locked' });
}

function retryAfter({ fixedLease, remainingTime }: LockBusyError): number {
  if (fixedLease && remainingTime >= 0) return Math.max(1, Math.ceil(remainingTime / 1000));
  return Math.ceil(Math.random() * LONGEST_GUESS) || 1;
}
