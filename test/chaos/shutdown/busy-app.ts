// Run by shutdown.test.ts: a Nest application under load, which prints what its bodies do, and shuts down on SIGTERM.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { machineTime } from '../history.js';

const BODY = 150;
const [url] = process.argv.slice(2);

function say(what: string, more: object = {}): void {
  process.stdout.write(`${JSON.stringify({ at: machineTime(), what, ...more })}\n`);
}

@Injectable()
class Jobs {
  @DistributedLock('job:#<args[0]>')
  async run(name: string): Promise<void> {
    say('begins', { name });
    await sleep(BODY);
    await this.finish(name);
    say('ends', { name });
  }

  /** A lock that a running body needs in order to finish. It is still granted during shutdown. */
  @DistributedLock('audit:#<args[0]>')
  async finish(_name: string): Promise<void> {
    await sleep(10);
  }
}

@Module({
  imports: [RedisLockModule.forRoot({ connection: url, waitTime: Number.POSITIVE_INFINITY })],
  providers: [Jobs],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
const jobs = app.get(Jobs);
let stopping = false;
process.once('SIGTERM', () => {
  stopping = true;
  say('SIGTERM');
});

async function work(name: string): Promise<void> {
  // Continues to ask after the signal: whoever asks while others run is served, too.
  for (let asked = 0; !stopping || asked < 3; asked += stopping ? 1 : 0) {
    await jobs.run(name).catch((error: Error) => say('told', { name, error: error.name }));
  }
}

for (let i = 0; i < 40; i++) void work(`${i % 10}`);
