--[[
  Keeps the places of waiting owners in the queue of one fair lock. The head is told once more when the lock is free: it may
  have become the head because the one before it, who was told, died.

  KEYS[1]      lock
  KEYS[2]      queue: list of waiting owners
  KEYS[3]      zset: when the place of each lapses
  KEYS[4]      zset: until when each of our waiters is known to be alive

  ARGV[1]      PUBLISH or SPUBLISH
  ARGV[2]      ms for which to keep the places
  ARGV[2 + i]  owner

  Returns for each: 1, or 0 when that place was gone.
]]
-- @include wake-head
local lock, queue = KEYS[1], fairQueue(2)
local publish, placeTimeout = ARGV[1], tonumber(ARGV[2])
local now = millis()

local kept, refreshed = {}, {}
for i = 3, #ARGV do
  refreshed[ARGV[i]] = i - 2
  kept[i - 2] = 0
end

local java = 0
for _, owner in ipairs(redis.call('LRANGE', queue.list, 0, -1)) do
  local i = refreshed[owner]
  if i and lapseOf(queue, owner) > now then
    setLapse(queue, owner, now + placeTimeout + JAVA_WAIT * java, now + placeTimeout, placeTimeout)
    kept[i] = 1
  elseif not i and not redis.call('ZSCORE', queue.places, owner) then
    java = java + 1
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
