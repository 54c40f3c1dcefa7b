--[[
  Releases re-entrant and fenced locks, each for its owner, notifies waiters, and serves the line.

  KEYS[i]      lock

  ARGV[1]      PUBLISH or SPUBLISH; empty: notify nobody
  ARGV[2]      clock of the fencing tokens of these locks
  ARGV[2 + i]  owner

  Returns an answer for each: how many clients listened, NOT_PUBLISHED (-2), NOT_SERVED (-3) or less, { NOT_HELD (-1), server time in ms }, or
  { { error, type of the lock } }. If all answers are the same number, returns only this number, because Redis sends it
  faster than a list.
]]
-- @includes
local find = string.find
local attempt = redis.pcall
local publish = ARGV[1]
local answers = { unpack(KEYS) }
-- The keys under which the lines of the released locks would be.
local lines = { unpack(KEYS) }
local released = 0

for i = 1, #KEYS do
  local lock = KEYS[i]
  local removed = attempt('HDEL', lock, ARGV[2 + i])
  if removed == 1 then
    -- As in prefixed.lua, with fewer strings and calls, because this path must be fast.
    local channel, line
    if find(lock, '{', 1, true) then
      channel, line = 'redisson_lock__channel:' .. lock, 'nestjs_redis_lock_turns:' .. lock
    else
      channel, line = 'redisson_lock__channel:{' .. lock .. '}', 'nestjs_redis_lock_turns:{' .. lock .. '}'
    end
    local listeners = publish ~= '' and attempt(publish, channel, '0')
    -- The lock is released even if the user may not publish.
    answers[i] = type(listeners) == 'number' and listeners or NOT_PUBLISHED
    released = released + 1
    lines[released] = line
  elseif removed == 0 or attempt('TYPE', lock).ok == 'zset' then -- n may hold it meanwhile
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
-- Most locks have no line. One command finds that out for all of them, and what serves a line is not even defined.
local lineCount = publish ~= '' and released > 0 and attempt('EXISTS', unpack(lines, 1, released))
if not lineCount or lineCount == 0 then
  return reply
end

-- @include line/time-of-grant
-- @includes
local isAllowed = type(lineCount) == 'number'
for i, answer in ipairs(answers) do
  if type(answer) == 'number' then
    -- The lock is released even if its line cannot be served.
    if isAllowed then
      pcall(serveLine, KEYS[i], publish, ARGV[2], math.max(0, answer))
    end
    answers[i] = servedOrNot(answer, isAllowed)
  end
end
return #KEYS == 1 and answers[1] or answers
