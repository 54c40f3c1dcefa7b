--[[
  Renews the read side of read/write locks. Wakes waiters if the lock, and not only this lease, ends earlier than before.

  KEYS[2i - 1]  lock
  KEYS[2i]      lease of this reader
]]
-- @template renew
if not isReader(lock, owner) then
  return 0
end
if limit and redis.call('PTTL', readLease(lock, owner, 1)) >= lease then
  return 1
end
local former = redis.call('PTTL', lock)
writeReadLease(lock, owner, lease)
wakeLineIfShorter(lock, publish, prefixed('redisson_rwlock', lock), '0', former, redis.call('PTTL', lock))
