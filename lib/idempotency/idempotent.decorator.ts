import type { Type } from '@nestjs/common';
import { LockConfigurationError } from '../engine/errors.js';
import { createInterceptor } from './idempotent.interceptor.js';
import { type AnyRequest, type IdempotentOptions, type Settings, toSettings } from './idempotent.options.js';
import { INTERCEPTOR, INTERCEPTORS } from './refuse-handlers.js';

/** A decorator of handlers and of controllers. @publicApi */
export type IdempotentDecorator = MethodDecorator & ClassDecorator;

/**
 * Answers a repeated request with the first answer, by its `Idempotency-Key`: the handler runs once, and each request
 * with the same key and the same content gets its status, headers and body, on any replica, also while it is running.
 * On a controller, it concerns all handlers but those of GET, HEAD and OPTIONS; the decorator of a handler comes before
 * that of its controller. It works on Express and Fastify.
 *
 * ```ts
 * @Post()
 * @Idempotent({ scope: (request) => request.user.id, keepFor: '24h' })
 * async pay(@Body() payment: PaymentDto) { … }
 * ```
 *
 * - It runs after guards, and outside of the other interceptors of the handler or controller. Pipes run inside.
 * - A request without a key gets 400, one whose key was used for another request 422, and one whose content can't be
 *   told apart 415. If the first request is still running after `waitTime`, or its answer could not be kept: 409.
 * - An error whose status is below 500 is an answer (see `keepErrors`). After another one, a repetition runs again.
 * - If Redis does not answer, the response is 503, and the handler does not run.
 * - At most one request runs *while its lock is held*, which is not exactly once. See {@link idempotencyKey}.
 *
 * @throws LockConfigurationError for a bad option, when the class is defined. When the application starts, also for
 *   handlers with `@Sse`, `@Render` or a plain `@Res()`, and for what is not an HTTP handler
 * @see docs/idempotency.md, and draft-ietf-httpapi-idempotency-key-header
 * @publicApi
 */
export function Idempotent<Request = AnyRequest>(options: IdempotentOptions<Request>): IdempotentDecorator {
  return (target: object, key?: string | symbol, descriptor?: PropertyDescriptor) => {
    if (key === undefined) return decorateController(target as Type, options);
    const type = target.constructor as Type;
    const where = `@Idempotent of ${type.name}.${String(key)}`;
    const handler: unknown = descriptor?.value;
    if (typeof handler !== 'function' || typeof target === 'function')
      throw new LockConfigurationError(`${where}: it is for handlers, the methods of controllers`);
    standOn(handler, type, toSettings(options, where), where);
  };
}

function decorateController(type: Type, options: IdempotentOptions): void {
  const where = `@Idempotent of ${type.name}`;
  standOn(type, type, toSettings(options, where), where);
}

/** Puts the interceptor outside of the others, so that what is kept is what they have made of the result. */
function standOn(place: object, type: Type, settings: Settings, where: string): void {
  if (Reflect.hasOwnMetadata(INTERCEPTOR, place)) throw new LockConfigurationError(`${where}: it is there twice`);
  const interceptor = createInterceptor(settings, type);
  Reflect.defineMetadata(INTERCEPTOR, interceptor, place);
  Reflect.defineMetadata(INTERCEPTORS, [interceptor, ...(Reflect.getMetadata(INTERCEPTORS, place) ?? [])], place);
}
