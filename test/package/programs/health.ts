// An application with a health check, whose Redis (REDIS_URL, REDIS_PID) is stopped for a while.
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { RedisLockModule } from 'nestjs-redis-lock';
import { LockHealthIndicator } from 'nestjs-redis-lock/health';

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly locks: LockHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.locks.isHealthy('locks')]);
  }
}

@Module({
  imports: [
    RedisLockModule.forRoot({ connection: process.env.REDIS_URL!, commandTimeout: 1_000 }),
    TerminusModule.forRoot({ logger: false }),
  ],
  providers: [LockHealthIndicator],
  controllers: [HealthController],
})
class AppModule {}

async function main() {
  const app = await NestFactory.create(AppModule, { logger: false });
  await app.listen(0, '127.0.0.1');
  const url = `${await app.getUrl()}/health`;
  const look = async () => {
    const answer = await fetch(url);
    const { details } = (await answer.json()) as { details: { locks?: { status: string; problems: string[] } } };
    return { code: answer.status, status: details.locks?.status, problems: details.locks?.problems };
  };
  const before = await look();
  process.kill(Number(process.env.REDIS_PID), 'SIGSTOP');
  const during = await look();
  process.kill(Number(process.env.REDIS_PID), 'SIGCONT');
  let after = await look();
  for (const start = Date.now(); after.code !== 200 && Date.now() - start < 20_000; after = await look());
  await app.close();
  process.stdout.write(JSON.stringify({ before, during, after }));
}

void main();
