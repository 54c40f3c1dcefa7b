-- A read/write lock is a hash with `mode`, a field for each reader, and `<owner>:write` for the writer, which may also
-- read. Each reader has a lease in a key beside the lock. The lock's lease is the longest of them. Java's readers count
-- how often they hold the lock, and have a lease for each hold. Our readers hold it once.
local function readLease(lock, owner, hold)
  return suffixed(lock, owner .. ':rwlock_timeout:' .. hold)
end
