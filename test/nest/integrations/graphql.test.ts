import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import type { INestApplication } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import {
  Args,
  Field,
  GraphQLModule,
  GraphQLSchemaHost,
  ID,
  Int,
  Mutation,
  ObjectType,
  Parent,
  Query,
  ResolveField,
  Resolver,
  Subscription,
} from '@nestjs/graphql';
import { Test } from '@nestjs/testing';
import { type ExecutionResult, parse, subscribe } from 'graphql';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { LockExceptionFilter } from '../../../lib/nest/lock-exception.filter.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { until } from '../../support/until.js';
import { Section } from '../support/section.js';

const section = new Section();

@ObjectType()
class Order {
  @Field(() => ID)
  id!: string;
  @Field(() => Int)
  total!: number;
}

@Resolver(() => Order)
class OrdersResolver {
  @Query(() => Order)
  @DistributedLock('order:#<args[0]>')
  async below(@Args('id') id: string) {
    return section.visit({ id });
  }

  @DistributedLock('order:#<args[0]>')
  @Mutation(() => Order)
  async above(@Args('id') id: string) {
    return section.visit({ id });
  }

  @ResolveField(() => Int)
  @DistributedLock('total:#<args[0].id>')
  async total(@Parent() order: Order) {
    return order.id.length;
  }

  @DistributedLock({ key: 'order:#<args[0]>', waitTime: 0 })
  @Query(() => Order)
  async impatient(@Args('id') id: string) {
    return { id };
  }

  @Subscription(() => Order, { resolve: (order) => order })
  @DistributedLock('order:#<args[0]>')
  async *watch(@Args('id') id: string) {
    yield { id };
  }
}

describe('with @nestjs/graphql', () => {
  let app: INestApplication;
  let url: string;
  beforeAll(async () => {
    const module = await Test.createTestingModule({
      imports: [
        RedisLockModule.forRoot({ backend: 'memory' }),
        GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true }),
      ],
      providers: [OrdersResolver, { provide: APP_FILTER, useClass: LockExceptionFilter }],
    }).compile();
    app = module.createNestApplication({ logger: false, forceCloseConnections: true });
    await app.listen(0, '127.0.0.1');
    url = `${await app.getUrl()}/graphql`;
  });
  afterAll(() => app.close());
  beforeEach(() => Object.assign(section, new Section()));

  const ask = async (query: string) => {
    const headers = { 'content-type': 'application/json' };
    const reply = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ query }) });
    return (await reply.json()) as ExecutionResult;
  };

  it.each([
    ['below', 'query'],
    ['above', 'mutation'],
  ])('resolvers with the decorator on the other side of theirs run under the lock (%s)', async (field, kind) => {
    const replies = await Promise.all([1, 1, 1].map(() => ask(`${kind} { ${field}(id: "abc") { id total } }`)));
    expect(replies).toEqual(replies.map(() => ({ data: { [field]: { id: 'abc', total: 3 } } })));
    expect(section).toMatchObject({ most: 1, entered: 3 });
  });

  it('a busy lock is an error of that field, whose code LockExceptionFilter gives, and which names neither lock nor holder', async () => {
    await using held = await app.get(LockService).acquire('order:7');
    const { errors, data } = await ask('{ impatient(id: "7") { id } }');
    expect(data).toBeNull();
    expect(errors).toEqual([
      expect.objectContaining({
        message: 'Somebody else is working on this right now, try again later',
        extensions: expect.objectContaining({ code: 'LOCKED' }),
        path: ['impatient'],
      }),
    ]);
    for (const secret of ['order:7', held.owner]) expect(JSON.stringify(errors)).not.toContain(secret);
  });

  it('a subscription holds the lock from its first event to its end', async () => {
    const { schema } = app.get(GraphQLSchemaHost);
    const events = (await subscribe({
      schema,
      document: parse('subscription { watch(id: "7") { id total } }'),
    })) as AsyncGenerator;
    expect(await app.get(LockService).isLocked('order:7')).toBe(false);
    expect(await events.next()).toEqual({ done: false, value: { data: { watch: { id: '7', total: 1 } } } });
    expect(await app.get(LockService).isLocked('order:7')).toBe(true);
    await events.return(undefined);
    expect(await app.get(LockService).isLocked('order:7')).toBe(false);
  });
  it('a subscription that ends while it waits for the lock stops waiting', async () => {
    const locks = app.get(LockService);
    await using _held = await locks.acquire('order:7');
    const { schema } = app.get(GraphQLSchemaHost);
    const document = parse('subscription { watch(id: "7") { id } }');
    const events = (await subscribe({ schema, document })) as AsyncGenerator;
    const first = events.next();
    await until(async () => (await locks.inspect('order:7')).waiting === 1);
    expect(await events.return(undefined)).toEqual({ done: true, value: undefined });
    expect(await first).toEqual({ done: true, value: undefined });
    expect(await locks.inspect('order:7')).toMatchObject({ waiting: 0 });
  });
});
