--[[
  Releases re-entrant and fenced locks, each for its owner, and notifies waiters.

  KEYS[i]      lock

  ARGV[1]      PUBLISH or SPUBLISH; empty: notify nobody
  ARGV[1 + i]  owner

  Returns an answer for each: how many clients listened, NOT_PUBLISHED (-2), { NOT_HELD (-1), server time in ms }, or
  { { error, type of the lock } }. If all answers are the same number, returns only this number, because Redis sends it
  faster than a list.
]]
-- @include release-replies
-- @include prefixed
local pcall = redis.pcall
local publish = ARGV[1]
local answers = {}

for i = 1, #KEYS do
  local lock = KEYS[i]
  local removed = pcall('HDEL', lock, ARGV[1 + i])
  if removed == 1 then
    local listeners = publish == '' and 0 or pcall(publish, prefixed('redisson_lock__channel', lock), '0')
    -- The lock is released even if the user may not publish.
    answers[i] = type(listeners) == 'number' and listeners or NOT_PUBLISHED
  elseif removed == 0 then
    local time = pcall('TIME')
    answers[i] = { NOT_HELD, time[1] * 1000 + math.floor(time[2] / 1000) }
  else
    answers[i] = { { removed.err, pcall('TYPE', lock).ok or 'unknown' } }
  end
end
local same = type(answers[1]) == 'number'
for i = 2, #answers do
  same = same and answers[i] == answers[1]
end
return same and answers[1] or answers
