/** How long a pool may take to give a connection, in milliseconds. */
const PATIENCE = 5_000;

/**
 * Takes a connection from a pool of the user's. pg and mysql2 wait for ever where others have used it up. A connection
 * that comes too late is given back.
 *
 * @throws the driver's error, or one that says that the pool is used up
 */
export function fromPool<T>(take: () => Promise<T>, giveBack: (connection: T) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      const remedy = 'give a pool that nothing else uses, or url';
      reject(
        new Error(
          `no connection of the pool that was given is free or could be opened within ${PATIENCE} ms: ${remedy}`,
        ),
      );
    }, PATIENCE);
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
