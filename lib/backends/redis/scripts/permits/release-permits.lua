--[[
  Releases locks that n may hold, each for its owner, notifies waiters, and serves the line.

  KEYS[i]      lock

  ARGV[1]      PUBLISH or SPUBLISH; empty: notify nobody
  ARGV[2]      1: clients may listen that this server does not count
  ARGV[2 + i]  owner

  Returns an answer for each: how many clients listened, NOT_PUBLISHED (-2), { NOT_HELD (-1), server time in ms }, or
  { { error, type of the lock } }.
]]
-- @include ttl-replies
-- @include release-replies
-- @include server-time
-- @include prefixed
-- @include publish-to
-- @include expire
-- @include answer-of
-- @include line/line-of
-- @include line/first-in-line
-- @include line/grant-permits
-- @include line/serve-line
-- @include permits/holds-permit
-- @include permits/fit-to-permits
local publish, now = ARGV[1], serverTime()

local function release(i)
  local lock, owner = KEYS[i], ARGV[2 + i]
  if not holdsPermit(lock, owner, now) then
    return { NOT_HELD, now }
  end
  redis.call('ZREM', lock, owner)
  fitToPermits(lock, now)
  if publish == '' then
    return NOT_PUBLISHED
  end
  local listeners = publishTo(publish, prefixed('redisson_lock__channel', lock), '0')
  -- The lock is released even if its line cannot be served.
  pcall(serveLine, lock, publish, ARGV[2] == '1' or (listeners or 0) > 0)
  return listeners or NOT_PUBLISHED
end

local answers = {}
for i = 1, #KEYS do
  answers[i] = answerOf(release, i, i, 1)
end
return answers
