// What compiles, and what must not compile. Checked by `npm run typecheck`, for which a missing error is an error too.
import type { Readable } from 'node:stream';
import type { Observable, Subject } from 'rxjs';
import type { LockBusyError } from '../../../lib/engine/errors.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { SingleFlight } from '../../../lib/nest/decorator/single-flight.decorator.js';

interface Order {
  readonly id: string;
  readonly items: readonly { readonly sku: string }[];
}

declare const something: never;

export class ReturnTypes {
  @DistributedLock('a')
  async promise() {}

  @DistributedLock('a')
  promiseOrMore(): Promise<number> | number {
    return something;
  }

  @DistributedLock('a')
  observable(): Observable<number> {
    return something;
  }

  @DistributedLock('a')
  async *generator() {
    yield 1;
  }

  @DistributedLock('a')
  iterable(): AsyncIterable<number> {
    return something;
  }

  @DistributedLock('a')
  generic<T>(value: T): Promise<T> {
    return Promise.resolve(value);
  }

  // @ts-expect-error a string cannot wait for a lock
  @DistributedLock('a')
  text(): string {
    return something;
  }

  // @ts-expect-error neither can void
  @DistributedLock('a')
  nothing(): void {}

  // @ts-expect-error a generator cannot wait
  @DistributedLock('a')
  *numbers() {
    yield 1;
  }

  // @ts-expect-error the wrapped method gives an Observable, which is no Subject
  @DistributedLock('a')
  subject(): Subject<number> {
    return something;
  }

  // @ts-expect-error the wrapped method gives a generator, which is no stream
  @DistributedLock('a')
  stream(): Readable {
    return something;
  }
}

export class KeyFunctions {
  @DistributedLock((order: Order) => order.items.map(({ sku }) => `sku:${sku}`))
  async reserve(_order: Order) {}

  @DistributedLock((order: Order) => `order:${order.id}`)
  async more(_order: Order, _express: boolean) {}

  @DistributedLock({ key: (id: string, at?: Date) => `${id}${at?.getTime()}`, waitTime: '2s' })
  async withOptions(_id: string, _at?: Date) {}

  @DistributedLock(function (this: KeyFunctions, id: string) {
    return `${this.region}:${id}`;
  })
  async ofInstance(_id: string) {}

  @DistributedLock<[Order]>((order) => order.id)
  async given(_order: Order) {}

  @DistributedLock<Parameters<KeyFunctions['given']>>((order) => order.id)
  async likeAnother(_order: Order) {}

  readonly region = 'eu';

  // @ts-expect-error the method gets a number
  @DistributedLock((id: string) => id)
  async otherType(_id: number) {}

  // @ts-expect-error the method gets one argument
  @DistributedLock((a: string, b: string) => a + b)
  async tooMany(_a: string) {}

  // @ts-expect-error a number is no name
  @DistributedLock((id: number) => id)
  async noName(_id: number) {}
}

declare const someString: string;

export class Templates {
  @DistributedLock('order:#<args[0]>:#<args[1].id>')
  async both(_id: string, _order: Order) {}

  @DistributedLock({ key: 'order:#<args[1]>', waitTime: '1s' })
  async optional(_id: string, _lot?: string) {}

  @DistributedLock('order:#<args[1]>')
  async withDefault(_id: string, _lot = '') {}

  @DistributedLock(['order:#<args[0]>', 'lot:#<args[7]>'])
  async rest(..._ids: string[]) {}

  @DistributedLock('orders:#<args[*]>:#<this.region>:#<method>')
  async every(_id: string) {}

  @DistributedLock(someString)
  async unknownText(_id: string) {}

  @DistributedLock({ key: `order:${someString}:#<args[0]>`, waitTime: '1s' })
  async partlyKnownText(_id: string): Promise<void> {}

  @SingleFlight('prices:#<args[0]>')
  async prices(_id: string) {}

  // @ts-expect-error the method has one parameter
  @DistributedLock('order:#<args[1]>')
  async second(_id: string) {}

  // @ts-expect-error the method has none
  @DistributedLock({ key: 'order:#<args[0].id>', waitTime: '1s' })
  async none() {}

  // @ts-expect-error the second template of the list
  @DistributedLock(['order:#<args[0]>', 'lot:#<args[1]>'])
  async listed(_id: string) {}

  // @ts-expect-error the second path
  @DistributedLock({ key: 'order:#<args[0]>:#<args[2]>', onBusy: 'skip' })
  async third(_id: string, _lot: string) {}

  // @ts-expect-error the method has one parameter
  @SingleFlight('prices:#<args[1]>')
  async otherPrices(_id: string) {}

  // @ts-expect-error the method has none
  @SingleFlight({ key: 'prices:#<args[0]>', keepFor: '1m' })
  async keptPrices() {}

  readonly region = 'eu';
}

export class BusyAnswers {
  @DistributedLock({ key: 'a', onBusy: 'throw' })
  async none() {}

  // @ts-expect-error a method is not named, but called by a function
  @DistributedLock({ key: 'a', onBusy: 'open' })
  async byName() {}

  @DistributedLock({
    key: (id: string) => id,
    onBusy(this: BusyAnswers, _busy, id) {
      return this.open(id);
    },
  })
  async byFunction(_id: string) {}

  open(_id: string) {}
}

export class Options {
  @DistributedLock({ key: 'a', onBusy: 'skip' })
  async skip() {}

  @DistributedLock({ key: 'a', onBusy: 'newest' })
  async newest(): Promise<number | undefined> {
    return 1;
  }

  // @ts-expect-error a superseded call returns undefined, which is no number
  @DistributedLock({ key: 'a', onBusy: 'newest' })
  async newestNumber(): Promise<number> {
    return 1;
  }

  @DistributedLock({ key: 'a', onBusy: 'skip' })
  async skipWithAnswer(): Promise<number | undefined> {
    return 1;
  }

  @DistributedLock({ key: 'a', onBusy: 'skip' })
  skipOrEmit(): Observable<number | undefined> {
    return something;
  }

  @DistributedLock({ key: (id: string) => id, onBusy: 'skip' })
  async *skipIteration(_id: string): AsyncGenerator<number> {
    yield 1;
  }

  // @ts-expect-error a skipped call returns undefined, which is no number
  @DistributedLock({ key: 'a', onBusy: 'skip' })
  async skipNumber(): Promise<number> {
    return 1;
  }

  // @ts-expect-error a skipped Observable emits undefined
  @DistributedLock({ key: 'a', onBusy: 'skip', waitTime: '1s' })
  skipEmission(): Observable<number> {
    return something;
  }

  // @ts-expect-error the method gets a number
  @DistributedLock({ key: (id: string) => id, onBusy: 'skip' })
  async skipOtherType(_id: number): Promise<void> {}

  @DistributedLock({ key: 'a', onBusy: 'skip' })
  async byName() {}

  @DistributedLock({ key: 'a', onBusy: (busy: LockBusyError, id: string) => `${id} ${busy.remainingTime}` })
  async answer(id: string) {
    return id;
  }

  // @ts-expect-error there is no such option
  @DistributedLock({ key: 'a', leasTime: 100 })
  async unknown() {}

  // @ts-expect-error a key is needed
  @DistributedLock({ waitTime: 100 })
  async noKey() {}

  // @ts-expect-error no duration
  @DistributedLock({ key: 'a', waitTime: 'soon' })
  async noDuration() {}

  // @ts-expect-error no type of lock
  @DistributedLock({ key: 'a', type: 'mutex' })
  async noType() {}
}

export class Signals {
  @DistributedLock({ key: 'a', signal: (_id: string, gone: AbortSignal) => gone })
  async ofTheArguments(_id: string, _gone: AbortSignal) {}

  @DistributedLock({ key: (id: string) => id, signal: () => undefined })
  async none(_id: string) {}

  // @ts-expect-error the method has no second parameter
  @DistributedLock({ key: 'a', signal: (_id: string, gone: AbortSignal) => gone })
  async otherArguments(_id: string) {}

  // @ts-expect-error an AbortController is not a signal
  @DistributedLock({ key: 'a', signal: () => new AbortController() })
  async notASignal() {}

  @SingleFlight({ key: 'a', signal: (gone: AbortSignal) => gone })
  async shared(_gone: AbortSignal) {}
}
