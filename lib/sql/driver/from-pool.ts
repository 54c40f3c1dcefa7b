/** How long a pool may take to open a connection, in milliseconds. */
const PATIENCE = 5_000;
/** How long to wait if all connections of the pool are in use, in milliseconds. */
const PATIENCE_IF_USED_UP = 1_000;

/** What to do about a pool that others use up. */
export const OWN_POOL = 'give a pool that nothing else uses, or url';

/**
 * Takes a connection from the user's pool. pg and mysql2 wait forever if all its connections are in use. A connection
 * that arrives too late is released.
 *
 * @param isUsedUp whether all connections of the pool are in use, as far as that is known
 * @throws the driver's error, or one that says that the pool has no free connection
 */
export function fromPool<T>(
  take: () => Promise<T>,
  giveBack: (connection: T) => void,
  isUsedUp: () => boolean,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const giveUp = (patience: number) => {
      isLate = true;
      reject(new Error(`no connection of the pool is free or could be opened within ${patience} ms: ${OWN_POOL}`));
    };
    let timer = setTimeout(() => {
      if (isUsedUp()) return giveUp(PATIENCE_IF_USED_UP);
      timer = setTimeout(() => giveUp(PATIENCE), PATIENCE - PATIENCE_IF_USED_UP);
    }, PATIENCE_IF_USED_UP);
    take().then(
      (connection) => {
        clearTimeout(timer);
        if (isLate) giveBack(connection);
        else resolve(connection);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
