--[[
  Takes the permits of as many groups, from the first on, as there are permits for.

  KEYS[1]      semaphore: how many permits are available
  KEYS[2]      latest request of this session

  ARGV[1]      server time in ms after which the script does nothing
  ARGV[2]      sequence number of the request
  ARGV[3]      ms for which to remember it
  ARGV[4]      1: an earlier copy may still be under way, so remember the answer whatever it is
  ARGV[4 + i]  permits of a group

  Returns how many groups got their permits. Returns { 'expired', server time in ms } when it came too late.
]]
-- @include deadline
-- @include synchronizers/count-of
-- @include synchronizers/requests
-- @include synchronizers/remember-request
local semaphore, latest = KEYS[1], KEYS[2]
local sequence, lifetime, isRepeated = ARGV[2], ARGV[3], ARGV[4] == '1'

local answer = earlierAnswer(latest, sequence)
if answer then
  return tonumber(answer) or 0
end
local available = countOf(semaphore)
local taken, served = 0, 0
for i = 5, #ARGV do
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
return served
