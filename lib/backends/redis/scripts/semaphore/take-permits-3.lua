--[[
  Takes permits for groups. Serves them in order, until there are not enough permits for the next one.

  KEYS[1]      semaphore: how many permits are available
  KEYS[2]      note: hash with the type and the total, for people to read
  KEYS[3]      latest request of this session

  ARGV[1]      server time in ms after which the script does nothing
  ARGV[2]      sequence number of the request
  ARGV[3]      ms for which to remember it
  ARGV[4]      1: an earlier copy may still be under way, so remember any answer
  ARGV[5]      PUBLISH or SPUBLISH, used if ARGV[6] creates the semaphore
  ARGV[6]      permits of a semaphore that does not exist yet; empty: do not create it
  ARGV[6 + i]  permits of a group

  Returns how many groups got their permits, or -1 when the semaphore does not exist.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include deadline
-- @includes
local semaphore, note, latest = KEYS[1], KEYS[2], KEYS[3]
local sequence, lifetime, isRepeated = ARGV[2], ARGV[3], ARGV[4] == '1'
local publish, initial = ARGV[5], ARGV[6]
local MISSING = -1

local answer = earlierAnswer(latest, sequence)
if answer then
  return tonumber(answer) or 0
end
local available, isMissing, isNew = countOf(semaphore), false, false
if available == 0 and redis.call('EXISTS', semaphore) == 0 then
  available, isMissing = setUp(semaphore, note, 'semaphore', initial)
  isNew = not isMissing
end
local taken, served = 0, 0
for i = 7, #ARGV do
  local permits = tonumber(ARGV[i])
  if taken + permits > available then
    break
  end
  taken, served = taken + permits, served + 1
end
if served > 0 or isRepeated then
  rememberRequest(latest, sequence, served, lifetime)
end
if taken > 0 then
  redis.call('DECRBY', semaphore, taken)
end
if isNew then
  publishPermits(publish, semaphore, available - taken)
end
if isMissing then
  return MISSING
end
if served == 0 then
  noteType(note, 'semaphore')
end
return served
