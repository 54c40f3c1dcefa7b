--[[
  Releases fair locks, each for its owner, and notifies the head of the queue, or waiters of other types if nobody is in
  it.

  KEYS[4i - 3]  lock
  KEYS[4i - 2]  queue: list of waiting owners
  KEYS[4i - 1]  zset: when each of them is dropped from the queue
  KEYS[4i]      zset: the time until which each of our waiters counts as alive

  ARGV[1]       PUBLISH or SPUBLISH; empty: notify nobody
  ARGV[1 + i]   owner

  Returns an answer for each: { how many clients listened or NOT_PUBLISHED (-2), head }, without a head when the queue is
  empty, { NOT_HELD (-1), server time in ms }, or { { error, types of the keys } }.
]]
-- @include line/time-of-grant
-- @includes
local publish = ARGV[1]
local now = serverTime()

local function release(i)
  local lock, owner = KEYS[4 * i - 3], ARGV[1 + i]
  if not holdsPlain(lock, owner) then
    return { NOT_HELD, now }
  end
  redis.call('HDEL', lock, owner)
  local listeners, head = wakeHead(fairQueue(4 * i - 2), lock, publish, now)
  return { listeners or NOT_PUBLISHED, head }
end

local answers = {}
for i = 1, #KEYS / 4 do
  answers[i] = answerOf(release, i, 4 * i - 3, 4)
end
return answers
