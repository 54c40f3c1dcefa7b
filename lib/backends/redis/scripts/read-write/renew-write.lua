--[[
  Renews the write side of read/write locks. Wakes waiters if the lock, and not only this lease, ends earlier than before.

  KEYS[2i - 1]  lock
  KEYS[2i]      lease of this writer as a reader, if it also reads
]]
-- @template renew
if not isWriter(lock, owner) then
  return 0
end
local former = redis.call('PTTL', lock)
if limit and former >= lease then
  return 1
end
setWriteLease(lock, owner, lease)
wakeLineIfShorter(lock, publish, prefixed('redisson_rwlock', lock), '1', former, redis.call('PTTL', lock))
