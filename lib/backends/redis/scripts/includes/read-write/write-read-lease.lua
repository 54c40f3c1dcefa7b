-- Writes the lease of a reader that has its field in the lock, and makes the lock last as long. The lock's comes first:
-- before 7.2, Redis reads its clock again within a script, and a lock that outlasts its readers by two ms looks as if
-- another reader held it.
local function writeReadLease(lock, owner, lease)
  local key = readLease(lock, owner, 1)
  local before, ttl = redis.call('PTTL', key), redis.call('PTTL', lock)
  if ttl < lease then
    expire(lock, lease)
  end
  local set = redis.pcall('SET', key, 1, 'PX', lease)
  if set.err then -- the user may not call SET, and a reader without a lease is none
    redis.call('HDEL', lock, owner)
    if redis.call('HLEN', lock) == 1 then
      redis.call('DEL', lock)
    end
    error(set.err, 0)
  end
  if ttl >= lease and before >= ttl - 1 and redis.call('HGET', lock, 'mode') == 'read' then
    fitToReaders(lock) -- this lease was the longest one, and became shorter
  end
end
