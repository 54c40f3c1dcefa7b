// What the command line uses of the Redis backend, to look at servers that may be in trouble: connections without
// their checks, names of keys and channels, and the words of errors.
export { checkDatabaseExists } from './connection/check-database-exists.js';
export { sentinelMasters } from './connection/check-server.js';
export { OTHER_KEYS_REMEDY, otherKeysIn } from './connection/other-keys.js';
export { adviceFor, errorCode, messageOf } from './connection/redis-errors.js';
export { tagOf } from './hash-slot.js';
export { clientForUrl, openTopology } from './links/choose-client.js';
export type { Connection } from './links/connection.js';
export type { ChannelKind, Link, SentCommand, SubscriberConnection } from './links/link.js';
export type { Topology } from './links/topology.js';
export { checkUrl, parseUrl, toNodeRedisConnection } from './links/url-settings.js';
export {
  clientChannel,
  fairChannelPrefix,
  fairHeartbeats,
  fairQueue,
  lineChannel,
  linePlaces,
  lockChannel,
  permitLeases,
} from './lock-keys.js';
