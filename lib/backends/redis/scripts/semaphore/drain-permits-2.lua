--[[
  Takes all permits that are available.

  KEYS[1]  semaphore: how many permits are available
  KEYS[2]  latest request of this session

  ARGV[1]  server time in ms after which the script does nothing
  ARGV[2]  sequence number of the request
  ARGV[3]  ms for which to remember it
  ARGV[4]  1: an earlier copy may still be under way, so remember any answer

  Returns how many it took. Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include deadline
-- @includes
local semaphore, latest = KEYS[1], KEYS[2]
local sequence, lifetime, isRepeated = ARGV[2], ARGV[3], ARGV[4] == '1'

local answer = earlierAnswer(latest, sequence)
if answer then
  return tonumber(answer) or 0
end
local available = math.max(0, countOf(semaphore))
if available > 0 or isRepeated then
  rememberRequest(latest, sequence, available, lifetime)
end
if available > 0 then
  redis.call('DECRBY', semaphore, available)
end
return available
