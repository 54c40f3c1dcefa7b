/** The connection option cannot be used; the message says why, and what to do. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}
