-- With more fields than this, all readers are checked only if the lock has no lease. Otherwise each further reader
-- would make acquisitions slower.
local FEW_FIELDS = 16

-- Why `owner` cannot read: { ttl, holder }, or nil if it can. A third element is 'reentrant' if the lock is not held as
-- a read/write lock, because its release goes to another channel. Without `pastLine`, it lets those go first that are in
-- front of it in line and do not read.
local function whyReaderWaits(lock, owner, pastLine)
  if typeOf(lock) == 'zset' then
    return permitInWay(lock)
  end
  local mode = redis.call('HGET', lock, 'mode')
  if mode == 'write' then
    if isWriter(lock, owner) then
      return nil
    end
    return { redis.call('PTTL', lock), holderOf(lock) }
  end
  local ttl = redis.call('PTTL', lock)
  if mode ~= 'read' and ttl ~= NO_KEY then
    return { ttl, holderOf(lock), not mode and 'reentrant' or nil }
  end
  if ttl == NO_LEASE or redis.call('HLEN', lock) <= FEW_FIELDS then
    lockFields(lock)
  end
  if pastLine or (mode and isReader(lock, owner)) then
    return nil
  end
  return placeBefore(lock, owner, true, serverTime())
end
