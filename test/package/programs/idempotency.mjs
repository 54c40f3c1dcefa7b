// Run by matrix/idempotency.test.ts, and by hand: REDIS_URL=redis://... node idempotency.mjs
// On Express and on Fastify, two processes of one application get each row of docs/idempotency.md, 200 equal requests at
// once, and faults: they are killed and stopped before, during and after a run. Prints what clients got as JSON.
import 'reflect-metadata';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  ClassSerializerInterceptor,
  Controller,
  HttpException,
  Logger,
  Module,
  Param,
  Post,
  Req,
  UseInterceptors,
  VersioningType,
} from '@nestjs/common';
import { NestFactory, Reflector } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { Exclude } from 'class-transformer';
import { RedisLockModule } from 'nestjs-redis-lock';
import { Idempotent, idempotencyKey } from 'nestjs-redis-lock/idempotency';
import { from, mergeMap } from 'rxjs';

const [, , role, platform, round] = process.argv;

/** Applies decorators, which JavaScript does not have. */
function method(type, name, ...decorators) {
  const described = Object.getOwnPropertyDescriptor(type.prototype, name);
  Object.defineProperty(type.prototype, name, Reflect.decorate(decorators, type.prototype, name, described));
}

// ── One replica ──────────────────────────────────────────────────────────────────────────────────────────────────────

class Account {
  name = 'Ada';
  password = 'secret';
}
Reflect.decorate([Exclude()], Account.prototype, 'password');

/** Reports where the replica is, and waits until the driver lets it go on. */
async function at(place) {
  process.send({ place });
  const [message] = await once(process, 'message');
  return message;
}

async function replica() {
  const scope = ({ headers }) => headers.user ?? 'nobody';
  class Payments {
    async slow() {
      await at('in run');
      return { by: process.pid };
    }
    async late() {
      process.send({ place: 'run' });
      return { by: process.pid };
    }
    async fails(status) {
      process.send({ place: 'run' });
      throw new HttpException({ why: 'so' }, Number(status));
    }
    async account() {
      return new Account();
    }
    async leak() {
      process.send({ place: 'run' });
      return new Account();
    }
    // The last one, because its path is that of the others, too.
    async pay(account, request) {
      process.send({ place: 'run' });
      return { account, key: idempotencyKey(request) };
    }
  }
  // After the run, and after its answer is kept.
  const beforeSending = {
    intercept: (_context, next) =>
      next.handle().pipe(mergeMap((value) => from(at('kept')).pipe(mergeMap(() => [value])))),
  };
  const idempotent = Idempotent({ scope, keepFor: '1h', waitTime: '15s' });
  Param('account')(Payments.prototype, 'pay', 0);
  Req()(Payments.prototype, 'pay', 1);
  Param('status')(Payments.prototype, 'fails', 0);
  method(Payments, 'fails', Post('fails/:status'), idempotent);
  method(Payments, 'slow', Post('slow'), idempotent);
  method(Payments, 'late', Post('late'), idempotent);
  method(Payments, 'account', Post('account'), idempotent, UseInterceptors(ClassSerializerInterceptor));
  method(Payments, 'leak', Post('leak'), idempotent);
  method(Payments, 'pay', Post(':account'), idempotent);
  Reflect.decorate([Controller({ path: 'pay', version: '1' })], Payments);
  class AppModule {}
  const locks = {
    connection: process.env.REDIS_URL,
    keyPrefix: `${round}:`,
    watchdogTimeout: '2s',
    shutdownTimeout: 10,
  };
  Reflect.decorate([Module({ imports: [RedisLockModule.forRoot(locks)], controllers: [Payments] })], AppModule);
  const warnings = [];
  Logger.overrideLogger({ log() {}, error() {}, fatal() {}, warn: (line) => warnings.push(line) });
  const app = await NestFactory.create(AppModule, platform === 'Express' ? new ExpressAdapter() : new FastifyAdapter());
  app.enableVersioning({ type: VersioningType.URI });
  app.useGlobalInterceptors(new ClassSerializerInterceptor(app.get(Reflector)), {
    intercept: (context, next) =>
      context.getHandler().name === 'late' ? beforeSending.intercept(context, next) : next.handle(),
  });
  const document = SwaggerModule.createDocument(app, new DocumentBuilder().build());
  const { parameters, responses } = document.paths['/v1/pay/slow'].post;
  await app.listen(0, '127.0.0.1');
  const documented = [...parameters.map(({ name }) => name), ...Object.keys(responses)];
  process.send({ url: await app.getUrl(), documented });
  process.on('message', (message) => message === 'warnings' && process.send({ warnings }));
}

// ── The driver ───────────────────────────────────────────────────────────────────────────────────────────────────────

class Replica {
  places = [];
  constructor(on) {
    const args = ['replica', on, `${process.pid}-${on}`];
    this.process = fork(fileURLToPath(import.meta.url), args);
    this.process.on('message', (message) => {
      if (message.place) this.places.push(message.place);
      else Object.assign(this, message);
    });
  }
  async has(field) {
    while (this[field] === undefined) await sleep(10);
    return this;
  }
  async at(place) {
    while (!this.places.includes(place)) await sleep(5);
  }
  goOn() {
    this.process.send('go on');
  }
  /** With a signal of the system, which it does not notice. */
  signal(name) {
    this.process.kill(name);
  }
  get runs() {
    return this.places.filter((place) => place.includes('run')).length;
  }
  async send(path, { key, body = {}, user = '1' } = {}) {
    const headers = { 'content-type': 'application/json', user, ...(key && { 'idempotency-key': key }) };
    const answer = await fetch(`${this.url}/v1/pay/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const isReplay = answer.headers.get('idempotency-replayed') === 'true';
    return [answer.status, await answer.text(), ...(isReplay ? ['replayed'] : [])];
  }
}

const pair = (on) => Promise.all([new Replica(on), new Replica(on)].map((one) => one.has('url')));
const status = ([code, , ...more]) => [code, ...more].join(' ');
let keys = 0;
const newKey = () => `key-${process.pid}-${++keys}`;

async function rows(on) {
  const [one, two] = await pair(on);
  const runs = () => one.runs + two.runs;
  /** The answers of one, one and two, and how often the handler has run. */
  const thrice = async (path) => {
    const before = runs();
    const key = newKey();
    const answers = [await one.send(path, { key }), await one.send(path, { key }), await two.send(path, { key })];
    const bodies = new Set(answers.map(([, text]) => text));
    return [...answers.map(status), `${bodies.size} bodies`, `${runs() - before} runs`].join(', ');
  };
  const key = newKey();
  const result = {
    documented: one.documented.join(),
    'without a key': status(await one.send('ada')),
    repeated: await thrice('ada'),
    'an error of 402': await thrice('fails/402'),
    'an error of 429': await thrice('fails/429'),
    'an error of 500': await thrice('fails/500'),
    'inner serializer': await thrice('account'),
    'outer serializer': await thrice('leak'),
    first: status(await one.send('ada', { key })),
    'another body': status(await two.send('ada', { key, body: { other: 1 } })),
    'another path': status(await two.send('bob', { key })),
    'another user': status(await two.send('ada', { key, user: '2' })),
  };
  const before = runs();
  const same = newKey();
  const sent = Array.from({ length: 200 }, (_, i) => [one, two][i % 2].send('ada', { key: same }));
  const answers = await Promise.all(sent);
  const kinds = new Set(answers.map(([code, text]) => `${code} ${text}`)).size;
  result['200 at once'] =
    `${kinds} answer, ${runs() - before} run, ${answers.filter(([, , mark]) => mark).length} replayed`;
  const slow = newKey();
  const first = one.send('slow', { key: slow });
  await one.at('in run');
  const waiting = two.send('slow', { key: slow });
  await sleep(200);
  one.goOn();
  result['while it runs'] = [status(await first), status(await waiting)].join(', ');
  for (const { process } of [one, two]) process.kill('SIGKILL');
  return result;
}

/** Kills the first replica in the middle of its run. The other one runs when the lease has ended. */
async function killedInTheMiddle(on) {
  const [one, two] = await pair(on);
  const key = newKey();
  const first = one.send('slow', { key }).catch(() => ['no answer']);
  await one.at('in run');
  const again = two.send('slow', { key });
  one.signal('SIGKILL');
  const began = Date.now();
  await two.at('in run');
  const waited = Date.now() - began;
  two.goOn();
  const result = [status(await first), status(await again), status(await two.send('slow', { key }))];
  two.signal('SIGKILL');
  return { answers: result.join(', '), waitedForTheLease: waited > 500 && waited < 10_000 };
}

/** Kills the first replica when its answer is kept, and before it is sent. */
async function killedBeforeSending(on) {
  const [one, two] = await pair(on);
  const key = newKey();
  const first = one.send('late', { key }).catch(() => ['no answer']);
  await one.at('kept');
  one.signal('SIGKILL');
  const again = two.send('late', { key });
  await two.at('kept');
  two.goOn();
  const result = [status(await first), status(await again), `${one.runs + two.runs} run`];
  two.signal('SIGKILL');
  return result.join(', ');
}

/** Stops the first replica for longer than its lease. It may not overwrite the answer of the other one. */
async function stopped(on) {
  const [one, two] = await pair(on);
  const key = newKey();
  const first = one.send('slow', { key });
  await one.at('in run');
  one.signal('SIGSTOP');
  const second = two.send('slow', { key });
  await two.at('in run');
  two.goOn();
  const [, by] = await second;
  one.signal('SIGCONT');
  one.goOn();
  const own = await first;
  const third = await one.send('slow', { key });
  one.process.send('warnings');
  const { warnings } = await one.has('warnings');
  for (const { process } of [one, two]) process.kill('SIGKILL');
  return {
    answers: [status(own), status(await second), status(third)].join(', '),
    keptThatOfTheSecond: third[1] === by && own[1] !== by,
    warned: warnings.some((line) => /has run, but its answer may not be kept/.test(line)),
  };
}

if (role === 'replica') await replica();
else {
  const result = {};
  for (const on of ['Express', 'Fastify'])
    result[on] = {
      ...(await rows(on)),
      'killed in the middle': await killedInTheMiddle(on),
      'killed before sending': await killedBeforeSending(on),
      stopped: await stopped(on),
    };
  console.log(JSON.stringify(result));
  process.exit();
}
