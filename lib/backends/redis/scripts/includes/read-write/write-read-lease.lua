-- Writes the lease of a reader that has its field in the lock, and makes the lock last as long. The lock's lease is
-- written first. Before 7.2, Redis reads its clock again within a script, and a lock that outlasts its readers by two
-- ms seems to be held by another reader.
local function writeReadLease(lock, owner, lease)
  local key = readLease(lock, owner, 1)
  local before, ttl = redis.call('PTTL', key), redis.call('PTTL', lock)
  if ttl < lease then
    expire(lock, lease)
  end
  -- A reader that has a lease gets a longer or shorter one also from a server whose memory is full, which refuses SET.
  if before == NO_KEY or redis.call('PEXPIRE', key, lease) == 0 then
    local set = redis.pcall('SET', key, 1, 'PX', lease)
    if set.err then -- the user may not call SET, and a reader needs a lease
      redis.call('HDEL', lock, owner)
      if redis.call('HLEN', lock) == 1 then
        redis.call('DEL', lock)
      end
      error(set.err, 0)
    end
  end
  if ttl >= lease and before >= ttl - 1 and redis.call('HGET', lock, 'mode') == 'read' then
    fitToReaders(lock) -- this was the longest lease, and it became shorter
  end
end
