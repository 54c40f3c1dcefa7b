--[[
  Removes a waiting owner from the queue of a fair lock. If it was the head and the lock is free, notifies the next
  owner, or waiters of other types if nobody is left in the queue.

  KEYS[1]  lock
  KEYS[2]  queue: list of waiting owners
  KEYS[3]  zset: when each of them is dropped from the queue
  KEYS[4]  zset: the time until which each of our waiters counts as alive

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  owner

  Returns 1, or 0 when it was not in the queue.
]]
-- @include line/time-of-grant
-- @includes
local lock, queue = KEYS[1], fairQueue(2)
local publish, owner = ARGV[1], ARGV[2]
local now = serverTime()
local head = headOf(queue, now)

if leaveQueue(queue, owner) == 0 then
  return 0
end
if head == owner and redis.call('EXISTS', lock) == 0 then
  wakeHead(queue, lock, publish, now)
end
return 1
