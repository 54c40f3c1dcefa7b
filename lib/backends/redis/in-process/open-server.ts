import { InProcessServer } from './in-process-server.js';
import { TRANSLATED_SCRIPTS } from './translated-scripts.generated.js';

/**
 * Opens a server with the library's scripts. Only loaded where locks are kept in memory.
 *
 * @param micros the server's time in µs since 1970
 */
export function openServer(micros: () => number): InProcessServer {
  return new InProcessServer({ scripts: TRANSLATED_SCRIPTS, micros });
}
