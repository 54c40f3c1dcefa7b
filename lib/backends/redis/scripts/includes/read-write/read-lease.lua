-- A read/write lock is a hash with `mode`, a field for each reader, and `<owner>:write` for the writer, which may read
-- as well. Each reader has its own lease, in a key beside the lock; the lock's own lease is the longest of them. Java's
-- readers count how often they hold the lock, with a lease for each hold; ours hold it once.
local function readLease(lock, owner, hold)
  return suffixed(lock, owner .. ':rwlock_timeout:' .. hold)
end
