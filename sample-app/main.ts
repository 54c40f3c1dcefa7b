import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { REPLICA } from './config/replica.js';

const app = await NestFactory.create(AppModule);
// On SIGTERM, requests that hold a lock are answered before the process exits.
app.enableShutdownHooks();
await app.listen(process.env.PORT ?? 3000, process.env.HOST ?? '127.0.0.1');
new Logger('Shop').log(`${REPLICA} listens on ${await app.getUrl()}`);
