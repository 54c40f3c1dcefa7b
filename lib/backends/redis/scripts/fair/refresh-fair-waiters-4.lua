--[[
  Keeps waiting owners in the queue of one fair lock. If the lock is free, notifies the head again, or waiters of other
  types if nobody is left in the queue, because the owner that was notified before may have died.

  KEYS[1]      lock
  KEYS[2]      queue: list of waiting owners
  KEYS[3]      zset: when each of them is dropped from the queue
  KEYS[4]      zset: the time until which each of our waiters counts as alive

  ARGV[1]      PUBLISH or SPUBLISH
  ARGV[2]      waiterTimeout: ms for which to keep them
  ARGV[2 + i]  owner

  Returns an answer for each: 1, or 0 when the owner was no longer in the queue.
]]
-- @include line/time-of-grant
-- @includes
local lock, queue = KEYS[1], fairQueue(2)
local publish, waiterTimeout = ARGV[1], tonumber(ARGV[2])
local now = serverTime()

local kept, refreshed = {}, {}
for i = 3, #ARGV do
  refreshed[ARGV[i]] = i - 2
  kept[i - 2] = 0
end

local javaWaiters = 0
for _, owner in ipairs(redis.call('LRANGE', queue.list, 0, -1)) do
  local i = refreshed[owner]
  if i and waitsUntil(queue, owner) > now then
    local alive = now + waiterTimeout
    setTimeout(queue, owner, alive + JAVA_WAIT * javaWaiters, alive, waiterTimeout)
    kept[i] = 1
  elseif not i and not redis.call('ZSCORE', queue.heartbeats, owner) then
    javaWaiters = javaWaiters + 1
  end
end

for owner, i in pairs(refreshed) do
  if kept[i] == 0 then
    leaveQueue(queue, owner)
  end
end
if redis.call('EXISTS', lock) == 0 then
  wakeHead(queue, lock, publish, now)
end
return kept
