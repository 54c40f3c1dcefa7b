--[[
  Takes all permits that are available.

  KEYS[1]  semaphore: how many permits are available
  KEYS[2]  latest request of this lane

  ARGV[1]  server time in ms after which it is not executed
  ARGV[2]  number of the request
  ARGV[3]  ms for which to remember it
  ARGV[4]  1: an earlier copy may still be under way, so the answer is remembered whatever it is

  Returns how many that were, or { 'expired', server time in ms } when it came too late.
]]
-- @include limit
-- @include counter
-- @include requests
local semaphore, latest = KEYS[1], KEYS[2]
local number, memory, isRepeated = ARGV[2], ARGV[3], ARGV[4] == '1'

local answer = answered(latest, number)
if answer then
  return tonumber(answer) or 0
end
local available = math.max(0, counterOf(semaphore))
if available > 0 or isRepeated then
  remember(latest, number, available, memory)
end
if available > 0 then
  redis.call('DECRBY', semaphore, available)
end
return available
