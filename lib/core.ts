export {
  LockAbortedError,
  LockBusyError,
  LockConfigurationError,
  LockError,
  LockKeyError,
  LockLostError,
  LockNotOwnedError,
  LockUnavailableError,
  LockUpgradeError,
} from './engine/errors.js';
