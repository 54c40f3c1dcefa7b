import type { SeededRandom } from '../../../support/seeded-random.js';
import type { ScheduleKind } from '../kinds.js';
import { ERRANDS, type Errand } from './errands.js';
import { LATCH_ERRANDS } from './latch-errands.js';
import { NEWEST_ERRANDS } from './newest-errands.js';
import { PERMIT_ERRANDS } from './permit-errands.js';
import { PLACE_ERRANDS } from './place-errands.js';
import { SCATTERED_ERRANDS } from './scattered-errands.js';
import { SCOPED_ERRANDS } from './scoped-errands.js';
import { TICKET_ERRANDS } from './ticket-errands.js';

const ALL_ERRANDS: Record<string, Errand> = {
  ...ERRANDS,
  ...SCOPED_ERRANDS,
  ...SCATTERED_ERRANDS,
  ...PERMIT_ERRANDS,
  ...PLACE_ERRANDS,
  ...LATCH_ERRANDS,
  ...NEWEST_ERRANDS,
  ...TICKET_ERRANDS,
};

/** Chooses one of all errands by their weights. */
export function drawErrand(weights: ScheduleKind['errands'], chance: SeededRandom): Errand {
  const entries = Object.entries(weights);
  let drawn = chance.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [name, weight] of entries) {
    drawn -= weight;
    if (drawn < 0) return ALL_ERRANDS[name];
  }
  return ALL_ERRANDS[entries[0][0]];
}
