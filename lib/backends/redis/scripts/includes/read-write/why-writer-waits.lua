-- Why `owner` cannot write: { ttl, holder }, or nil if it can. A third element is 'reentrant' if the lock is not held
-- as a read/write lock, because its release goes to another channel.
local function whyWriterWaits(lock, owner)
  local ttl = redis.call('PTTL', lock)
  if ttl == NO_KEY then
    return nil
  end
  if typeOf(lock) == 'zset' then
    return permitInWay(lock)
  end
  local mode = redis.call('HGET', lock, 'mode')
  if isWriter(lock, owner) then
    return nil
  end
  if mode ~= 'read' then
    return { ttl, holderOf(lock), not mode and 'reentrant' or nil }
  end
  lockFields(lock)
  local left, reader = longestReader(lock)
  if left then
    return { left, reader }
  end
  redis.call('DEL', lock)
  return nil
end
