import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import { LockBusyError } from '../engine/errors.js';

/**
 * Answers an HTTP request whose handler met a busy lock with 423 Locked, and with `Retry-After` where it is known how
 * long the holder's lease still runs. Works on Express and Fastify. The body is NestJS's; it tells neither the lock's name nor who holds it.
 *
 * ```ts
 * @UseFilters(LockExceptionFilter)                                           // a handler or a controller
 * providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }]        // all of them
 * ```
 *
 * Outside HTTP the error goes on to NestJS's own handling. Other errors of this library are not caught: that Redis is
 * away (LockUnavailableError) is a fault to be logged, not a state to tell the client about.
 *
 * @publicApi
 */
@Catch(LockBusyError)
export class LockExceptionFilter implements ExceptionFilter<LockBusyError> {
  catch(busy: LockBusyError, host: ArgumentsHost): unknown {
    const context = host.getType<string>();
    if (context === 'http') return answer(busy, host.switchToHttp().getResponse<Response>());
    // NestJS goes on to its own handler when a filter for messages gives nothing, but not when one for sockets does.
    if (context === 'ws')
      host.switchToWs().getClient<Socket>().emit?.('exception', { status: 'error', message: 'Internal server error' });
    if (context !== 'rpc' && context !== 'ws') throw busy;
    return undefined;
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

function answer(busy: LockBusyError, response: Response): void {
  if (response.headersSent || response.sent) return;
  if (busy.remainingTime >= 0)
    response.header('Retry-After', String(Math.max(1, Math.ceil(busy.remainingTime / 1000))));
  response.status(LOCKED).send({
    statusCode: LOCKED,
    message: 'Somebody else is working on this right now, try again later',
    error: 'Locked',
  });
}

const LOCKED = 423;
