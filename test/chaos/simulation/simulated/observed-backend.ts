import type {
  LineBackend,
  LockBackend,
  OwnerRef,
  ReleaseRequest,
  Subscription,
} from '../../../../lib/backends/lock-backend.js';
import type { SynchronizerBackend } from '../../../../lib/backends/synchronizer-backend.js';
import { validity } from '../../../../lib/engine/time/lease-clock.js';
import { differing } from '../../../support/watched/differing.js';
import { SpentOwners } from '../../../support/watched/spent-owners.js';

/** Is notified of what a process asks of its backend. */
export interface BackendObserver {
  /** An owner id is sent in an acquisition after its release. */
  reused(key: string, owner: string): void;
  /** A forced release has taken these locks. */
  forced(key: string, owners: readonly string[]): void;
  /** Permits certainly have a lease for `duration` milliseconds from `asked` on, by the process's clock. */
  leased(ids: readonly string[], asked: number, duration: number): void;
  /** An owner has a place in line, and knows that. */
  waits(key: string, owner: string): void;
  now(): number;
}

/** Watches the requests of one process. */
export class ObservedBackend {
  /** For the engine. */
  readonly port: LockBackend;
  /** How many subscriptions are open that do not last as long as the service. */
  subscriptions = 0;
  private readonly owners: SpentOwners;

  constructor(
    private readonly backend: LockBackend,
    synchronizers: SynchronizerBackend,
    private readonly observer: BackendObserver,
  ) {
    this.owners = new SpentOwners((key, id) => observer.reused(key, id));
    this.port = differing<LockBackend>(backend, {
      ...this.requests(),
      synchronizers: this.permits(synchronizers),
      line: this.line(),
      subscribe: (...request) => this.counted(backend.subscribe(...request)),
    });
  }

  private requests(): Partial<LockBackend> {
    const { backend, owners, observer } = this;
    return {
      acquire: async (request) => {
        owners.acquiring(request);
        const reply = await backend.acquire(request);
        if (!reply.acquired && request.nonce !== undefined) observer.waits(request.key, request.owner);
        return reply;
      },
      acquireAll: (requests) => {
        for (const request of requests) owners.acquiring(request);
        return backend.acquireAll(requests);
      },
      release: (request) => backend.release(this.sentRelease(request)),
      transfer: (request) => {
        const { key, from, to } = request;
        owners.acquiring({ key, owner: to });
        owners.givingBack({ key, owner: from });
        return backend.transfer(request);
      },
      adopt: (request) => {
        owners.acquiring({ key: request.key, owner: request.to });
        return (backend as Required<LockBackend>).adopt(request);
      },
      removeWaiter: (place: OwnerRef) => {
        owners.givingBack(place);
        return backend.removeWaiter(place);
      },
      forceRelease: async (key, expected) => {
        const forced = await backend.forceRelease(key, expected);
        observer.forced(key, forced);
        return forced;
      },
    };
  }

  /** A release that is kept back may be withdrawn until it is sent. */
  private sentRelease(request: ReleaseRequest): ReleaseRequest {
    const { owners } = this;
    if (request.leavesQueue === undefined) {
      owners.givingBack(request);
      return request;
    }
    return differing(request, {
      leavesQueue: () => {
        const isSent = request.leavesQueue?.() !== false;
        if (isSent) owners.givingBack(request);
        return isSent;
      },
    });
  }

  private permits(synchronizers: SynchronizerBackend): SynchronizerBackend {
    const { owners, observer } = this;
    return differing(synchronizers, {
      takeLeasedPermits: async (key, groups, leaseTime, request, initial) => {
        const asked = observer.now();
        for (const owner of groups.flat()) owners.acquiring({ key, owner });
        const taken = await synchronizers.takeLeasedPermits(key, groups, leaseTime, request, initial);
        observer.leased(groups.slice(0, taken.served).flat(), asked, validity(leaseTime));
        return taken;
      },
      giveLeasedPermits: (key, ids, request) => {
        for (const owner of ids) owners.givingBack({ key, owner });
        return synchronizers.giveLeasedPermits(key, ids, request);
      },
      renewPermits: async (key, ids, leaseTime) => {
        const asked = observer.now();
        const there = await synchronizers.renewPermits(key, ids, leaseTime);
        observer.leased(
          ids.filter((_, index) => there[index]),
          asked,
          validity(leaseTime),
        );
        return there;
      },
      subscribe: (...request) => this.counted(synchronizers.subscribe(...request)),
    });
  }

  private line(): LineBackend | undefined {
    const { line } = this.backend;
    return line && differing(line, { listen: (...request) => this.counted(line.listen(...request)) });
  }

  private counted(subscription: Subscription): Subscription {
    this.subscriptions++;
    let open = true;
    const close = () => {
      if (open) this.subscriptions--;
      open = false;
      subscription.close();
    };
    return { ready: subscription.ready, close };
  }
}
