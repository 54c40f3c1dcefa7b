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
-- @include server-time
-- @include permits/holds-permit
-- @include is-owner
-- @include permits/first-to-end
-- @include ttl-replies
-- @include expire
-- @include permits/fit-to-permits
-- @include becomes-shorter
-- @include publish-to
-- @include line/first-in-line
-- @include type-of
-- @include line/permit-of-place
-- @include line/grant-permits
-- @include prefixed
-- @include line/line-of
-- @include line/this-server
-- @include tokens
-- @include reserve-fenced-tokens
-- @include line/token-of-grant
-- @include line/serve-line
-- @include line/wake-line-if-shorter
-- @include answer-of
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
