--[[
  Renews fair locks, each for its owner. If a lease becomes shorter, notifies the head of the queue, or waiters of other
  types if nobody is in it, because they would sleep until the former lease ended.

  KEYS[4i - 3]  lock
  KEYS[4i - 2]  queue: list of waiting owners
  KEYS[4i - 1]  zset: when each of them is dropped from the queue
  KEYS[4i]      zset: the time until which each of our waiters counts as alive

  ARGV[1]       PUBLISH or SPUBLISH
  ARGV[2]       lease time in ms
  ARGV[2 + i]   owner

  Returns { server time in ms, answer, ... }: RENEWED (1), NOT_HELD (0), or { { error, types of the keys } }.
]]
-- @include line/time-of-grant
-- @includes
local publish, lease = ARGV[1], tonumber(ARGV[2])
local now = serverTime()

local function renew(i)
  local lock = KEYS[4 * i - 3]
  if not holdsPlain(lock, ARGV[2 + i]) then
    return 0
  end
  if becomesLonger(lock, ARGV[2]) then
    return 1
  end
  local former = redis.call('PTTL', lock)
  redis.call('PEXPIRE', lock, ARGV[2])
  if becomesShorter(former, lease) then
    wakeHead(fairQueue(4 * i - 2), lock, publish, now)
  end
  return 1
end

local answers = { now }
for i = 1, #KEYS / 4 do
  answers[1 + i] = answerOf(renew, i, 4 * i - 3, 4)
end
return answers
