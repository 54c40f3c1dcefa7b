--[[
  Releases fair locks, each for its owner, and tells the head of the queue.

  KEYS[4i - 3]  lock
  KEYS[4i - 2]  queue: list of waiting owners
  KEYS[4i - 1]  zset: when the place of each lapses
  KEYS[4i]      zset: until when each of our waiters is known to be alive

  ARGV[1]       PUBLISH or SPUBLISH; empty: tell nobody
  ARGV[1 + i]   owner

  Returns for each: { how many listened, head }, −2 when nobody waits or could be told, { −1, server time in ms } when this owner was not
  there, or { { error, types } }.
]]
-- @include each
-- @include plain-lock
-- @include wake-head
local publish = ARGV[1]
local now = millis()

local function release(i)
  local lock, owner = KEYS[4 * i - 3], ARGV[1 + i]
  if not holdsPlain(lock, owner) then
    return { -1, now }
  end
  redis.call('HDEL', lock, owner)
  local listeners, head = wakeHead(fairQueue(4 * i - 2), lock, publish, now)
  if not head then
    return -2
  end
  return { listeners, head }
end

local answers = {}
for i = 1, #KEYS / 4 do
  answers[i] = each(release, i, 4 * i - 3, 4)
end
return answers
