import type { Holding, LockType, ReleaseRequest } from '../lock-backend.js';
import { FAIR_KEYS } from './acquire-batch.js';
import type { BatchedScript } from './command-batch.js';
import { keysOf, LOCK, type LockKey, refuseFailure } from './item-answer.js';
import { readLease } from './lock-keys.js';
import type { RedisConnection } from './redis-connection.js';
import type { ScriptCall } from './script-call.js';
import { type ScriptName, scripts } from './scripts.js';

/** What Redis knows of a release. */
export interface Released {
  readonly released: boolean;
  /** How many clients of the server listened; undefined when nobody was to be told. */
  readonly told: number | undefined;
  /** Whom a fair lock told. */
  readonly head: string | undefined;
  readonly resent: boolean;
}

interface ReleaseForm {
  readonly script: ScriptName;
  readonly keys: readonly LockKey<Holding>[];
}

const PLAIN: ReleaseForm = { script: 'release-reentrant', keys: [LOCK] };

const FORMS: Record<LockType, ReleaseForm> = {
  reentrant: PLAIN,
  fenced: PLAIN,
  fair: { script: 'release-fair', keys: FAIR_KEYS },
  read: { script: 'release-read', keys: [LOCK, { of: ({ key, owner }) => readLease(key, owner), type: 'string' }] },
  write: { script: 'release-write', keys: [LOCK] },
};

/** Releases of one lock type, as they travel together. */
export class ReleaseBatch implements BatchedScript<ReleaseRequest, Released> {
  readonly script;
  private readonly form: ReleaseForm;

  /** @param publish the command by which waiters are told: PUBLISH or SPUBLISH */
  constructor(
    type: LockType,
    private readonly connection: RedisConnection,
    private readonly publish: () => string,
  ) {
    this.form = FORMS[type];
    this.script = scripts[this.form.script];
  }

  alike(one: ReleaseRequest, other: ReleaseRequest): boolean {
    return one.quietly === other.quietly;
  }

  keys(holdings: readonly Holding[]): string[] {
    return keysOf(this.form.keys, holdings);
  }

  args(requests: readonly ReleaseRequest[]): string[] {
    const args = [requests[0].quietly ? '' : this.publish()];
    for (const { owner } of requests) args.push(owner);
    return args;
  }

  read(reply: unknown, index: number, holding: Holding, call: ScriptCall): Released {
    const answer = (reply as readonly unknown[])[index];
    refuseFailure(answer, this.form.keys, holding, call, this.connection);
    const { resent } = call;
    if (Array.isArray(answer)) return { released: true, told: Number(answer[0]), head: String(answer[1]), resent };
    const told = Number(answer);
    return { released: told !== NOT_THERE, told: told < 0 ? undefined : told, head: undefined, resent };
  }
}

/** −2 is: released, and nobody had to be told. */
const NOT_THERE = -1;
