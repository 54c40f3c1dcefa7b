/** How long the server may take to close a connection after the client has asked it to, in milliseconds. */
const PATIENCE = 1_000;

/** The members of a socket that {@link closeSoon} uses. */
export interface Closable {
  unref(): void;
  destroy(): void;
}

/** Destroys the socket if the server does not close it in time. The timer does not keep the process alive. */
export function closeSoon(socket: Closable): void {
  socket.unref();
  setTimeout(() => socket.destroy(), PATIENCE).unref();
}
