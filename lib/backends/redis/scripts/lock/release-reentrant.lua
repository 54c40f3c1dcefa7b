--[[
  Releases re-entrant and fenced locks, each for its owner, notifies waiters, and serves the line.

  KEYS[i]      lock

  ARGV[1]      PUBLISH or SPUBLISH; empty: notify nobody
  ARGV[2]      1: clients may listen that this server does not count
  ARGV[2 + i]  owner

  Returns an answer for each: how many clients listened, NOT_PUBLISHED (-2), { NOT_HELD (-1), server time in ms }, or
  { { error, type of the lock } }. If all answers are the same number, returns only this number, because Redis sends it
  faster than a list.
]]
-- @include release-replies
-- @include prefixed
local attempt = redis.pcall
local publish = ARGV[1]
local answers = {}
local lined

for i = 1, #KEYS do
  local lock = KEYS[i]
  local removed = attempt('HDEL', lock, ARGV[2 + i])
  if removed == 1 then
    local listeners = publish == '' and 0 or attempt(publish, prefixed('redisson_lock__channel', lock), '0')
    -- The lock is released even if the user may not publish.
    answers[i] = type(listeners) == 'number' and listeners or NOT_PUBLISHED
    if publish ~= '' and attempt('EXISTS', prefixed('nestjs_redis_lock_turns', lock)) == 1 then
      lined = lined or {}
      lined[#lined + 1] = { lock, ARGV[2] == '1' or answers[i] > 0 }
    end
  elseif removed == 0 then
    local time = attempt('TIME')
    answers[i] = { NOT_HELD, time[1] * 1000 + math.floor(time[2] / 1000) }
  else
    answers[i] = { { removed.err, attempt('TYPE', lock).ok or 'unknown' } }
  end
end

local same = type(answers[1]) == 'number'
for i = 2, #answers do
  same = same and answers[i] == answers[1]
end
local reply = same and answers[1] or answers
-- Most locks have no line. What serves it is not even defined for them.
if not lined then
  return reply
end

-- @include server-time
-- @include publish-to
-- @include line/line-of
-- @include line/first-in-line
-- @include line/serve-line
for _, item in ipairs(lined) do
  -- The lock is released even if its line cannot be served.
  pcall(serveLine, item[1], publish, item[2])
end
return reply
