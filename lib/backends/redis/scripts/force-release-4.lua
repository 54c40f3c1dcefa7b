--[[
  Frees a lock of any type, whoever holds it, and wakes who waits.

  KEYS[1]  lock
  KEYS[2]  queue of a fair lock: list of waiting owners
  KEYS[3]  zset: when the place of each lapses
  KEYS[4]  zset: until when each of our waiters is known to be alive

  ARGV[1]  PUBLISH or SPUBLISH

  Returns 1, or 0 when it was free.
]]
-- @include wake-head
-- @include read-write
local lock, publish = KEYS[1], ARGV[1]

if redis.call('HGET', lock, 'mode') == 'read' and not fitToReaders(lock) then
  return 0
end
local fields = redis.call('HGETALL', lock)
if redis.call('DEL', lock) == 0 then
  return 0
end
for f = 1, #fields, 2 do
  for hold = 1, tonumber(fields[f + 1]) or 0 do
    redis.call('DEL', readLease(lock, fields[f], hold))
  end
end
tell(publish, prefixed('redisson_lock__channel', lock), '0')
tell(publish, prefixed('redisson_rwlock', lock), '1')
wakeHead(fairQueue(2), lock, publish, millis())
return 1
