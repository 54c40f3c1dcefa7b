// Handlers that answer a repeated request with their first answer, as a part of a NestJS application.
export { Idempotent, type IdempotentDecorator } from './idempotency/idempotent.decorator.js';
export type { IdempotentOptions } from './idempotency/idempotent.options.js';
export { idempotencyKey } from './idempotency/request-key.js';
