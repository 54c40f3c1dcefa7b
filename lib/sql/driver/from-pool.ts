/** How long a pool may take to return a connection, in milliseconds. */
const PATIENCE = 5_000;

/**
 * Takes a connection from the user's pool. pg and mysql2 wait forever if all its connections are in use. A connection
 * that arrives too late is released.
 *
 * @throws the driver's error, or one that says that the pool has no free connection
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
