--[[
  Acquires several re-entrant locks, or none of them, for each of several callers. acquire-all does the same for one
  caller and for locks of any type.

  KEYS[1]      clock of the fencing tokens
  KEYS[1 + i]  lock; the locks of one caller are consecutive

  ARGV[1]      server time in ms after which the script does nothing
  ARGV[2]      highest token that the caller has seen
  ARGV[3]      lease time in ms
  ARGV[4]      number of callers
  ARGV[4 + n]  how many locks caller n wants
  then         owner of each lock

  Returns { answer, ... }, one for each caller: the first token (those of its other locks follow consecutively),
  { index of the first busy lock (from 0), ttl, holder }, or { index, { error, type of the lock } }.
  For a single caller that acquired its locks, returns only the first token, because Redis sends a number faster than a
  list.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local call = redis.call
local callers = tonumber(ARGV[4])
local owners = 3 + callers
local answers = {}
local taken

-- Handles sets of free locks before the functions for the others are defined, because this path must be fast.
local first = 2
for n = 1, callers do
  local last = first + ARGV[4 + n] - 1
  local free = true
  for k = first, last do
    if call('PTTL', KEYS[k]) ~= NO_KEY then
      free = false
      break
    end
  end
  if free then
    if not upcoming then
      reserveTokens(KEYS[1], 0, #KEYS - 1)
    end
    answers[n] = upcoming
    for k = first, last do
      call('HSET', KEYS[k], ARGV[owners + k], '1')
      expire(KEYS[k], lease)
    end
    upcoming = upcoming + last - first + 1
  else
    taken = taken or {}
    taken[#taken + 1] = { n, first, last }
  end
  first = last + 1
end

if not taken then
  return callers == 1 and answers[1] or answers
end

-- @includes
local function findBusy(k)
  return whyOwnerWaits(KEYS[k], ARGV[owners + k])
end

for _, item in ipairs(taken) do
  local n, first, last = item[1], item[2], item[3]
  for k = first, last do
    local busy = answerOf(findBusy, k, k, 1)
    if busy then
      answers[n] = { k - first, busy[1], busy[2] }
      break
    end
  end
  if not answers[n] then
    if not upcoming then
      reserveTokens(KEYS[1], 0, #KEYS - 1)
    end
    answers[n] = upcoming
    for k = first, last do
      takePlain(KEYS[k], ARGV[owners + k], lease)
    end
    upcoming = upcoming + last - first + 1
  end
end
return answers
