--[[
  Renews locks that n may hold, each for its owner. If a lease becomes shorter and ends first, wakes waiters, because they
  would sleep until the former first lease ended.

  KEYS[i]      lock

  ARGV[1]      PUBLISH or SPUBLISH
  ARGV[2]      lease time in ms
  ARGV[2 + i]  owner

  Returns { server time in ms, answer, ... }: RENEWED (1), NOT_HELD (0), or { { error, type of the lock } }.
]]
-- @include line/time-of-grant
-- @includes
local publish, lease, now = ARGV[1], tonumber(ARGV[2]), serverTime()

local function renew(i)
  local lock, owner = KEYS[i], ARGV[2 + i]
  if not holdsPermit(lock, owner, now) then
    return 0
  end
  local former = firstToEnd(lock, now)[1]
  -- A server whose memory is full refuses ZADD, but not after another write.
  expire(lock, math.max(lease, redis.call('PTTL', lock)))
  redis.call('ZADD', lock, now + lease, owner)
  fitToPermits(lock, now)
  wakeLineIfShorter(lock, publish, prefixed('redisson_lock__channel', lock), '0', former, lease)
  return 1
end

local answers = { now }
for i = 1, #KEYS do
  answers[1 + i] = answerOf(renew, i, i, 1)
end
return answers
