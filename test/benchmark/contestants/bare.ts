import type { Contestant } from './contestant.js';

let last: Promise<void> = Promise.resolve();

/** No lock at all: the bodies of one process run one after another. This is the baseline for what a lock adds. */
export const bare: Contestant = {
  name: 'bare',
  waits: 'nothing',
  does: 'the bodies alone, one after another',
  async open() {
    return {
      async acquire() {
        const before = last;
        let end!: () => void;
        last = new Promise((resolve) => {
          end = resolve;
        });
        await before;
        return end;
      },
      release: async (end: unknown) => (end as () => void)(),
      close: async () => {},
    };
  },
};
