-- Why `owner` cannot hold a lock that `permits` owners may hold: { ttl, holder }, or nil if it can. The ttl is that of the
-- lease that ends first. A third element is 'write' if the lock is held as a read/write lock, whose release goes to
-- another channel.
local function whyPermitWaits(lock, owner, permits, now)
  local ttl = redis.call('PTTL', lock)
  if ttl == NO_KEY then
    return nil
  end
  if typeOf(lock) ~= 'zset' then
    local fields = lockFields(lock)
    return { ttl, holderAmong(fields), #fields > 1 and 'write' or nil }
  end
  local first = firstToEnd(lock, now)
  if redis.call('ZCOUNT', lock, '(' .. now, '+inf') < permits or holdsPermit(lock, owner, now) then
    return nil
  end
  return first
end
