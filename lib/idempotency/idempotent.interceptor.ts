import {
  type CallHandler,
  ConflictException,
  type ExecutionContext,
  Inject,
  Injectable,
  Logger,
  type NestInterceptor,
  type OnModuleInit,
  ServiceUnavailableException,
  type Type,
  UnprocessableEntityException,
} from '@nestjs/common';
import { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import { lastValueFrom, type Observable, of } from 'rxjs';
import {
  LockAbortedError,
  LockBusyError,
  LockConfigurationError,
  LockError,
  LockUnavailableError,
} from '../engine/errors.js';
import { type FlightOptions, type FlightSerializer, getLockServiceToken, LockService } from '../index.js';
import { fingerprintOf } from './fingerprint.js';
import { type HttpRequest, type HttpResponse, isSent, setHeader } from './http.js';
import type { Settings } from './idempotent.options.js';
import { type Entry, entryText, give, isAnswer, keep, type Outcome, readEntry, repeatOn } from './kept-answer.js';
import { describeInOpenApi } from './open-api.js';
import { isNearest, NO_HTTP, refuseHandlers } from './refuse-handlers.js';
import { hashOf, rememberKey, scopeText, sentKey } from './request-key.js';

/** The longest `Retry-After`, in seconds. It is chosen at random, so that clients do not all come back at once. */
const LONGEST_DELAY = 3;
/** The largest value of Redis, in bytes. A smaller one would hide answers of replicas with a larger `maxSize`. */
const ANY_SIZE = 512 * 1024 * 1024;

const logger = new Logger('Idempotent');

/** A run of this request's handler. */
interface Run {
  /** What is stored of it. */
  readonly text: string;
  /** Returns or throws what the first client gets. */
  give(): unknown;
}

/**
 * The interceptor of one @Idempotent. NestJS finds the dependencies of an interceptor by its class, so each has its own.
 *
 * @param target the decorated class, or the class of the decorated method
 */
export function createInterceptor(settings: Settings, target: Type): Type<NestInterceptor> {
  const { service } = settings;

  @Injectable()
  class IdempotentInterceptor implements NestInterceptor, OnModuleInit {
    constructor(
      // By its class, so that a test replaces it with one provider.
      @Inject(service === undefined ? LockService : getLockServiceToken(service)) private readonly locks: LockService,
      @Inject(ModulesContainer) private readonly modules: ModulesContainer,
      @Inject(ApplicationConfig) private readonly config: ApplicationConfig,
    ) {
      describeInOpenApi(IdempotentInterceptor, target, settings);
    }

    onModuleInit(): void {
      refuseHandlers(this.modules, IdempotentInterceptor, target);
    }

    async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
      const handler = context.getHandler() as (...args: never[]) => unknown;
      const where = `${context.getClass().name}.${handler.name}`;
      if (!isNearest(IdempotentInterceptor, handler, context.getClass())) return next.handle();
      if (context.getType<string>() !== 'http') throw new LockConfigurationError(`@Idempotent of ${where}: ${NO_HTTP}`);
      const request = context.switchToHttp().getRequest<HttpRequest>();
      const key = sentKey(request, settings);
      if (key === undefined) {
        rememberKey(request);
        return next.handle();
      }
      const whose = await scopeText(request, settings, where);
      const identity = `[${whose},${JSON.stringify(key)}]`;
      const fingerprint = await fingerprintOf(request, identity, settings, this.config.getVersioning(), where);
      const name = hashOf(identity);
      rememberKey(request, name);
      const response = context.switchToHttp().getResponse<HttpResponse>();
      return of(await answer(this.locks, { name, fingerprint, response, next, where }, settings));
    }
  }

  return IdempotentInterceptor;
}

/** A request that may be the first one or a repetition. */
interface Keyed {
  readonly name: string;
  readonly fingerprint: string;
  readonly response: HttpResponse;
  readonly next: CallHandler;
  /** The handler, as messages name it. */
  readonly where: string;
}

/** Runs the handler, or repeats its first answer. */
async function answer(locks: LockService, request: Keyed, settings: Settings): Promise<unknown> {
  const { fingerprint, response, where } = request;
  const name = `idempotency:${request.name}`;
  let run: Run | undefined;
  let entry: Entry;
  try {
    const options = optionsOf(settings);
    entry = (await locks.singleFlight(name, options, async () => {
      run = await runHandler(request, settings);
      return run.text;
    })) as Entry;
  } catch (error) {
    if (run === undefined) throw refusalOf(error, name, response, settings);
    const why = error instanceof Error ? error.message : String(error);
    logger.warn(`${where} has run, but its answer may not be kept, so a repetition may run it again: ${why}`);
    return run.give();
  }
  if (run !== undefined) return run.give();
  if (entry.fingerprint !== fingerprint)
    throw new UnprocessableEntityException(`This ${settings.header} was used for another request`);
  if (entry.answer === undefined)
    throw new ConflictException('This request was handled before, but its answer was not kept');
  repeatOn(response, entry.answer);
  return give(entry.answer);
}

function optionsOf(settings: Settings): FlightOptions & FlightSerializer<unknown> {
  const { keepFor, waitTime } = settings;
  return {
    keepFor,
    waitTime,
    maxSize: ANY_SIZE,
    serialize: (text) => text as string,
    deserialize: (text) => readEntry(text, settings),
  };
}

/** @throws the handler's error if it is not an answer. Then nothing is stored, and the next request runs the handler */
async function runHandler({ fingerprint, response, next, where }: Keyed, settings: Settings): Promise<Run> {
  const before = { ...response.getHeaders() };
  let outcome: Outcome;
  try {
    outcome = { value: await lastValueFrom(next.handle(), { defaultValue: undefined }) };
  } catch (error) {
    if (!isAnswer(error, settings)) throw error;
    outcome = { error };
  }
  const kept = keep(outcome, before, response, settings);
  if (kept.problem === undefined) return { text: entryText(fingerprint, kept.text), give: () => give(kept.answer) };
  const text = entryText(fingerprint);
  if (kept.hasInstance === true) return { text, give: () => refuseInstance(kept.problem, where) };
  logger.warn(
    `The answer of ${where} was not kept, because ${kept.problem}. The client has it, and repetitions get 409`,
  );
  return { text, give: () => giveAsItIs(outcome) };
}

function giveAsItIs(outcome: Outcome): unknown {
  if ('error' in outcome) throw outcome.error;
  return outcome.value;
}

function refuseInstance(problem: string, where: string): never {
  throw new LockConfigurationError(
    `The answer of ${where} was not sent, because ${problem}. Put @UseInterceptors(ClassSerializerInterceptor) on the handler, or return plain objects: a serializer outside of @Idempotent would not see the class, and would let through what @Exclude() hides`,
  );
}

/** What a client gets whose request has not run. */
function refusalOf(error: unknown, name: string, response: HttpResponse, { header }: Settings): unknown {
  // The error may come from the run of another caller in this process, about a lock that its handler used.
  if (!(error instanceof LockError) || error.lockName !== name) return error;
  const isBusy = error instanceof LockBusyError;
  if (!isBusy && !(error instanceof LockUnavailableError || error instanceof LockAbortedError)) return error;
  if (!isSent(response)) setHeader(response, 'Retry-After', String(1 + Math.floor(Math.random() * LONGEST_DELAY)));
  return isBusy
    ? new ConflictException(`The first request with this ${header} is still running`, { cause: error })
    : new ServiceUnavailableException(`The request has not run. Send it again with the same ${header}`, {
        cause: error,
      });
}
