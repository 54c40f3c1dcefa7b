--[[
  Takes a waiting owner out of the queue of a fair lock. If it was its turn, the next one is told.

  KEYS[1]  lock
  KEYS[2]  queue: list of waiting owners
  KEYS[3]  zset: when the place of each lapses
  KEYS[4]  zset: until when each of our waiters is known to be alive

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  owner

  Returns 1, or 0 when it had no place.
]]
-- @include wake-head
local lock, queue, owner = KEYS[1], fairQueue(2), ARGV[2]
local now = millis()
local head = headOf(queue, now)

if leaveQueue(queue, owner) == 0 then
  return 0
end
if head == owner and redis.call('EXISTS', lock) == 0 then
  wakeHead(queue, lock, ARGV[1], now)
end
return 1
