--[[
  Renews re-entrant and fenced locks, each for its owner. If a lease becomes shorter, wakes waiters, because they would
  sleep until the former lease ended.

  KEYS[i]      lock

  ARGV[1]      PUBLISH or SPUBLISH
  ARGV[2]      lease time in ms
  ARGV[2 + i]  owner

  Returns { server time in ms, answer, ... }: RENEWED (1), NOT_HELD (0), or { { error, type of the lock } }.
]]
-- @include line/time-of-grant
-- @includes
local publish, lease = ARGV[1], tonumber(ARGV[2])

local function renew(i)
  local lock = KEYS[i]
  if not holdsPlain(lock, ARGV[2 + i]) then
    return 0
  end
  if becomesLonger(lock, ARGV[2]) then
    return 1
  end
  local former = redis.call('PTTL', lock)
  redis.call('PEXPIRE', lock, ARGV[2])
  wakeLineIfShorter(lock, publish, prefixed('redisson_lock__channel', lock), '0', former, lease)
  return 1
end

local answers = { serverTime() }
for i = 1, #KEYS do
  answers[1 + i] = answerOf(renew, i, i, 1)
end
return answers
