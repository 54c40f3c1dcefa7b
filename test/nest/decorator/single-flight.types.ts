// What compiles, and what must not compile. Checked by `npm run typecheck`, for which a missing error is an error too.
import { applyDecorators } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { SingleFlight } from '../../../lib/nest/decorator/single-flight.decorator.js';

interface Price {
  readonly cents: number;
  readonly note?: string;
}

declare const something: never;

const asText = { serialize: (day: Date) => day.toISOString(), deserialize: (text: string) => new Date(text) };

export class Results {
  @SingleFlight('a')
  async price(): Promise<Price> {
    return something;
  }

  @SingleFlight({ key: 'a', keepFor: '1m' })
  async list(): Promise<(Price | null)[]> {
    return something;
  }

  @SingleFlight('a')
  async nothing() {}

  @SingleFlight({ key: 'a', ...asText })
  async day() {
    return new Date();
  }

  @applyDecorators(SingleFlight('a'))
  async applied() {}

  // @ts-expect-error a Date is not JSON
  @SingleFlight('a')
  async date() {
    return new Date();
  }

  // @ts-expect-error nor is a Map inside
  @SingleFlight({ key: 'a', keepFor: '1m' })
  async map() {
    return { map: new Map<string, string>() };
  }

  // @ts-expect-error the serializer is for another type
  @SingleFlight({ key: 'a', ...asText })
  async number() {
    return 1;
  }

  // @ts-expect-error a string cannot wait
  @SingleFlight('a')
  text(): string {
    return something;
  }

  // @ts-expect-error a result is shared as a whole
  @SingleFlight('a')
  observable(): Observable<number> {
    return something;
  }
}

export class Keys {
  @SingleFlight((id: string) => `price:${id}`)
  async one(id: string) {
    return id;
  }

  @SingleFlight({ key: (id: string, amount: number) => `${id}:${amount}`, keepFor: 1_000 })
  async two(id: string, amount: number) {
    return [id, amount];
  }

  // @ts-expect-error the method has no number
  @SingleFlight((id: number) => `price:${id}`)
  async wrong(id: string) {
    return id;
  }

  // @ts-expect-error one name, not a list
  @SingleFlight(['a', 'b'])
  async list() {}

  // @ts-expect-error no lock types
  @SingleFlight({ key: 'a', type: 'fair' })
  async fair() {}
}
