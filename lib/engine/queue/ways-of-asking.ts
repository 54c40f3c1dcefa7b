import type { HeldType } from '../../backends/lock-backend.js';
import type { QueueKind } from '../queue-table.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { newest } from './newest.js';
import { oneByOne } from './one-by-one.js';
import { Permits } from './permits.js';
import { Readers } from './readers.js';
import type { WayOfAsking } from './way-of-asking.js';

/** The kind of queue in which a caller waits. */
export function kindOf({ type, newest }: Pick<AcquisitionTerms, 'type' | 'newest'>): QueueKind {
  return newest ? 'newest' : type;
}

/** The type of the locks in such a queue; of readers and writers, the one for whom the queue was created. */
export function typeOf(kind: QueueKind): HeldType {
  return kind === 'newest' ? 'reentrant' : kind;
}

/** The kinds of queues that a {@link LockQueue} serves. The other two have classes of their own. */
export type AskingKind = Exclude<QueueKind, 'fair' | 'flight'>;

/** How the callers of such a queue ask. Ways without a state are shared by all queues. */
export function wayOf(kind: AskingKind): WayOfAsking {
  switch (kind) {
    case 'reentrant':
    case 'fenced':
      return oneByOne;
    case 'read':
    case 'write':
      return new Readers();
    case 'permits':
      return new Permits();
    case 'newest':
      return newest;
  }
}
