-- Writes the lease of a reader. Returns what its lease had left before, as PTTL answers.
local function writeReadLease(lock, owner, lease)
  local key = readLease(lock, owner, 1)
  local before = redis.call('PTTL', key)
  redis.call('SET', key, 1, 'PX', lease)
  return before
end
