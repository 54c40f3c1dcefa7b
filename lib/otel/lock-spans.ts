import {
  type Attributes,
  type Context,
  context,
  type Link,
  type Span,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import type { HolderClient } from '../engine/describe-holder.js';
import type { AcquireMessage, HoldMessage } from '../engine/events/channels.js';

/** Outcomes that are not failures. A call that onBusy answers, or a later call makes unnecessary, has not failed. */
const SUCCESSES: readonly AcquireMessage['outcome'][] = ['acquired', 'shared', 'skipped', 'superseded'];

/** Creates and ends the spans of acquisitions and holds. */
export class LockSpans {
  constructor(
    private readonly provider: TracerProvider | undefined,
    private readonly showsNames: boolean,
  ) {}

  startAcquire(message: AcquireMessage, parent: Context): Span {
    return this.start('lock acquire', message, parent, []);
  }

  endAcquire(span: Span, message: AcquireMessage): void {
    const { outcome, reentry, shared, handedOff, superseded, owner, owners, fencingToken, holderClient, error } =
      message;
    span.setAttributes({
      'distributed_lock.outcome': outcome,
      'distributed_lock.reentry': reentry,
      'distributed_lock.handed_off': handedOff,
      'distributed_lock.shared': shared || undefined,
      'distributed_lock.superseded': superseded || undefined,
      'distributed_lock.owner': owner,
      ...ownersOf(owners),
      'distributed_lock.fencing_token': fencingToken,
      ...(holderClient && describe(holderClient)),
    });
    if (!SUCCESSES.includes(outcome)) this.fail(span, error);
    span.end();
  }

  /**
   * Starts the span in the caller's trace. If the caller has none, it starts it in the trace of the acquisition.
   *
   * @param parent the caller's context at the start of the acquisition
   */
  startHold(message: HoldMessage, parent: Context, acquire: Span | undefined): Span {
    const isRoot = trace.getSpan(parent) === undefined;
    const trunk = isRoot && acquire !== undefined ? trace.setSpan(parent, acquire) : parent;
    const span = this.start(
      'lock hold',
      message,
      trunk,
      acquire === undefined ? [] : [{ context: acquire.spanContext() }],
    );
    span.setAttributes({
      'distributed_lock.reentry': message.reentry,
      'distributed_lock.owner': message.owner,
      ...ownersOf(message.owners),
      'distributed_lock.fencing_token': message.fencingToken,
    });
    return span;
  }

  endHold(span: Span, { outcome, error }: HoldMessage): void {
    span.setAttribute('distributed_lock.outcome', outcome as string);
    if (outcome === 'lost') this.fail(span, error);
    span.end();
  }

  renewalFailed(span: Span, error: Error, remainingTime: number): void {
    span.addEvent('lock renewal failed', {
      'exception.type': error.name,
      ...(this.showsNames && { 'exception.message': error.message }),
      'distributed_lock.remaining_time': remainingTime / 1_000,
    });
  }

  private start(what: string, message: AcquireMessage | HoldMessage, parent: Context, links: Link[]): Span {
    const { name, names, type, group, method } = message;
    const attributes: Attributes = { 'distributed_lock.type': type };
    if (group !== '') attributes['distributed_lock.group'] = group;
    if (method !== '') attributes['distributed_lock.method'] = method;
    if (this.showsNames) attributes['distributed_lock.name'] = name;
    if (names.length > 1) attributes['distributed_lock.count'] = names.length;
    const title = group === '' ? what : `${what} ${group}`;
    return this.tracer.startSpan(title, { attributes, links }, parent);
  }

  private fail(span: Span, error: unknown): void {
    const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
    span.setAttribute('error.type', name);
    span.recordException(this.showsNames ? { name, message, stack } : { name, message: '' });
    span.setStatus({ code: SpanStatusCode.ERROR, ...(this.showsNames && { message }) });
  }

  /** The tracer of the global provider. It also works if the provider is set later. */
  private get tracer() {
    return (this.provider ?? trace).getTracer('nestjs-redis-lock');
  }
}

/** Makes `span` the active span of the work that runs in it. */
export function runIn(span: Span): <T>(work: () => T) => T {
  return (work) => context.with(trace.setSpan(context.active(), span), work);
}

/** Only for several locks. */
function ownersOf(owners: ReadonlyMap<string, string> | undefined): Attributes {
  return owners === undefined || owners.size < 2 ? {} : { 'distributed_lock.owners': [...owners.values()] };
}

function describe({ application, host, pid, group, method }: HolderClient): Attributes {
  return {
    'distributed_lock.holder.application': application,
    'distributed_lock.holder.host': host,
    'distributed_lock.holder.pid': pid,
    'distributed_lock.holder.method': method || group || undefined,
  };
}
