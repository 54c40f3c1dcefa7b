import { RequestMethod, type Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { LockConfigurationError } from '../engine/errors.js';

/** Set on a handler or a controller: the interceptor of its @Idempotent. */
export const INTERCEPTOR = Symbol.for('nestjs-redis-lock.idempotent');

/** The keys of NestJS's metadata. Its package does not export them in all versions. */
export const INTERCEPTORS = '__interceptors__';
const CONTROLLER = '__controller__';
export const METHOD = 'method';
const PATTERN = 'microservices:pattern';
const SSE = '__sse__';
const RENDER = '__renderTemplate__';
const ARGUMENTS = '__routeArguments__';
const PASSTHROUGH = '__responsePassthrough__';
/** In the names of arguments: `@Res()` and `@Next()`. */
const RESPONSE_OR_NEXT = /^[12]:/;

const SAFE = [RequestMethod.GET, RequestMethod.HEAD, RequestMethod.OPTIONS];

type Method = (...args: never[]) => unknown;

export const NO_HTTP =
  '@Idempotent is for HTTP handlers of controllers: only they have a request header with a key, and one response that can be kept and repeated. For a GraphQL field, a message or a method, use @SingleFlight with the key among its arguments';

/** Whether requests for this handler have no effect, so that a controller's @Idempotent does not concern it. */
export function isSafe(handler: Method): boolean {
  return SAFE.includes(Reflect.getMetadata(METHOD, handler));
}

/** Whether this interceptor, of a handler or of a controller, is the nearest one to the handler. */
export function isNearest(interceptor: object, handler: Method, controller: object): boolean {
  const own = Reflect.getMetadata(INTERCEPTOR, handler);
  if (own !== undefined) return own === interceptor;
  return Reflect.getMetadata(INTERCEPTOR, controller) === interceptor && !isSafe(handler);
}

/**
 * Refuses what this interceptor stands on and can't work for.
 *
 * @param target the decorated class, or the class of the decorated method
 * @throws LockConfigurationError naming class and method, why, and the remedy
 */
export function refuseHandlers(modules: ModulesContainer, interceptor: object, target: Type): void {
  for (const { controllers, providers } of modules.values()) {
    for (const { metatype } of [...controllers.values(), ...providers.values()]) {
      if (typeof metatype !== 'function') continue;
      if (metatype === target || metatype.prototype instanceof target) refuseIn(metatype, interceptor);
    }
  }
}

function refuseIn(type: object & { readonly name: string; readonly prototype: object }, interceptor: object): void {
  const isController = Reflect.hasMetadata(CONTROLLER, type);
  if (!isController && Reflect.getMetadata(INTERCEPTOR, type) === interceptor) refuse(type.name, NO_HTTP);
  for (const [name, handler] of methodsOf(type.prototype)) {
    if (!isNearest(interceptor, handler, type)) continue;
    const where = `${type.name}.${name}`;
    const isRoute = isController && Reflect.hasMetadata(METHOD, handler);
    const isOwn = Reflect.hasMetadata(INTERCEPTOR, handler);
    if (Reflect.hasMetadata(PATTERN, handler) || (isOwn && !isRoute)) refuse(where, NO_HTTP);
    if (!isRoute) continue;
    if (Reflect.hasMetadata(SSE, handler)) refuse(where, 'an @Sse handler has a stream of answers; none can be kept');
    if (Reflect.hasMetadata(RENDER, handler))
      refuse(where, 'what @Render makes of a result is sent by the view engine, and can not be kept. Return the data');
    if (sendsItself(type, name))
      refuse(
        where,
        'with @Res() or @Next(), the handler sends the response itself, and it can not be kept. Use @Res({ passthrough: true }), and return the body',
      );
  }
}

function refuse(where: string, why: string): never {
  throw new LockConfigurationError(`@Idempotent of ${where}: ${why}`);
}

function sendsItself(type: object, name: string): boolean {
  const names = Object.keys(Reflect.getMetadata(ARGUMENTS, type, name) ?? {});
  return names.some((one) => RESPONSE_OR_NEXT.test(one)) && Reflect.getMetadata(PASSTHROUGH, type, name) !== true;
}

/** All methods, also inherited ones. */
function methodsOf(prototype: object): ReadonlyMap<string, Method> {
  const methods = new Map<string, Method>();
  for (let own = prototype; own !== null && own !== Object.prototype; own = Object.getPrototypeOf(own))
    for (const [name, method] of methodsIn(own)) if (!methods.has(name)) methods.set(name, method);
  return methods;
}

/** The methods of the class itself. */
export function methodsIn(prototype: object): readonly (readonly [string, Method])[] {
  return Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(([name, { value }]) =>
    typeof value === 'function' && name !== 'constructor' ? [[name, value as Method] as const] : [],
  );
}
