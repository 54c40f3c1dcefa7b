import type { Contestant } from './contestant.js';

let last: Promise<void> = Promise.resolve();

/** No lock at all: the bodies of one process, one after another. What a lock adds is measured against it. */
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
