import { classNameOf } from './class-name.js';
import type { Expression, Step } from './key-template-parser.js';

/** One call of a method, from which a key is made. */
export interface Invocation {
  readonly instance: object;
  readonly args: readonly unknown[];
  readonly method: string;
}

/** The value that a path leads to, or why it leads nowhere. */
export type Found = { readonly value: unknown } | { readonly missing: string };

/** Follows a path without `[*]`. */
export function follow(expression: Expression, invocation: Invocation): Found {
  let value = rootOf(expression, invocation);
  let path: string = expression.root;
  for (const step of expression.steps) {
    const found = take(value, step, path);
    if ('missing' in found) return found;
    value = found.value;
    path = step.upTo;
  }
  return { value };
}

/** Follows a path with `[*]`, and returns every value that it leads to, in order. */
export function followAll(expression: Expression, invocation: Invocation): readonly Found[] {
  let found: readonly Found[] = [{ value: rootOf(expression, invocation) }];
  let path: string = expression.root;
  for (const step of expression.steps) {
    const upTo = path;
    found = found.flatMap((one) => {
      if ('missing' in one) return [one];
      return step.kind === 'every' ? spread(one.value, upTo) : [take(one.value, step, upTo)];
    });
    path = step.upTo;
  }
  return found;
}

function rootOf({ root }: Expression, { args, instance, method }: Invocation): unknown {
  if (root === 'args') return args;
  if (root === 'this') return instance;
  return root === 'class' ? classNameOf(instance) : method;
}

function take(value: unknown, step: Step, path: string): Found {
  if (step.kind === 'property') {
    if (typeof value !== 'object' || value === null)
      return { missing: `${path} is ${describe(value)}, so there is no ${step.upTo}` };
    return { value: property(value, step.name) };
  }
  if (!Array.isArray(value)) return { missing: `${path} is ${describe(value)}, not an array` };
  return { value: value[(step as { index: number }).index] };
}

function spread(value: unknown, path: string): readonly Found[] {
  if (!Array.isArray(value) && !(value instanceof Set))
    return [{ missing: `${path} is ${describe(value)}, not an array or a Set` }];
  return Array.from(value, (element: unknown) => ({ value: element }));
}

/**
 * An own property, or an accessor that the object's class (or one that it extends) declares. A path cannot reach
 * anything else through prototypes: no methods, and nothing of Object.prototype.
 */
function property(object: object, name: string): unknown {
  if (Object.hasOwn(object, name)) return object[name as never];
  for (let type = Object.getPrototypeOf(object); type !== null && !isRoot(type); type = Object.getPrototypeOf(type)) {
    const descriptor = Object.getOwnPropertyDescriptor(type, name);
    if (descriptor !== undefined) return descriptor.get?.call(object);
  }
  return undefined;
}

/** Whether it is the Object.prototype of any realm. */
function isRoot(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, '__proto__');
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
