import { StreamableFile } from '@nestjs/common';
import type { LockService } from '../../service/lock-service.js';

/**
 * Warns once for each method that returned a stream. Its lock cannot be held until the stream is read: a stream that
 * nobody reads would hold it for ever.
 *
 * @param where how messages name the method: `OrdersService.export`
 */
export function warnOfUnreadStream(result: unknown, where: string, locks: LockService): void {
  if (!isUnreadStream(result)) return;
  locks.warnOnce(
    `a stream of ${where}`,
    `${where} returned a stream, which is read after its lock was released. Read it inside the method (buffer() of node:stream/consumers), or make the method an async generator, whose lock is held until it has been read: see "Files and streams" in docs/integrations.md`,
  );
}

/** Whether it is a stream, or Nest's StreamableFile of one, whose content has yet to be read from somewhere. */
function isUnreadStream(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (value instanceof StreamableFile) return isUnreadStream(value.getStream());
  const { getReader, pipe } = value as Record<string, unknown>;
  if (typeof getReader === 'function') return true;
  if (typeof pipe !== 'function') return false;
  const { readable, _readableState } = value as { readable?: boolean; _readableState?: { ended?: boolean } };
  // Of the streams of Node.js, only this property shows that the end has arrived in the buffer, as it has in a
  // StreamableFile of a Buffer from the start.
  return readable === true && _readableState?.ended !== true;
}
