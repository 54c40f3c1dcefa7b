/** How long a server may take to close a connection that was said goodbye to, in milliseconds. */
const PATIENCE = 1_000;

/** The members of a socket that are used here. */
export interface Closable {
  unref(): void;
  destroy(): void;
}

/**
 * Closes the socket of a connection if the server does not do so in time. Meanwhile it does not keep the process alive.
 */
export function closeSoon(socket: Closable): void {
  socket.unref();
  setTimeout(() => socket.destroy(), PATIENCE).unref();
}

/** The function does its work the first time only. */
export function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}
