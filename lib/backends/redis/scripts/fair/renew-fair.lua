--[[
  Renews fair locks. Wakes the head of the queue, or waiters of other types if nobody is in it.

  KEYS[4i - 3]  lock
  KEYS[4i - 2]  queue: list of waiting owners
  KEYS[4i - 1]  zset: when each of them is dropped from the queue
  KEYS[4i]      zset: the time until which each of our waiters counts as alive
]]
-- @template renew
if not holdsPlain(lock, owner) then
  return 0
end
if becomesLonger(lock, time) then
  return 1
end
local former = redis.call('PTTL', lock)
if limit and former >= lease then
  return 1
end
redis.call('PEXPIRE', lock, time)
if becomesShorter(former, lease) then
  wakeHead(fairQueue(first + 1), lock, publish, now)
end
