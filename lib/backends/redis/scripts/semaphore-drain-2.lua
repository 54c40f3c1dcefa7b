--[[
  Takes all permits that are available.

  KEYS[1]  semaphore: how many permits are available
  KEYS[2]  latest request of this lane

  ARGV[1]  number of the request
  ARGV[2]  ms for which to remember it

  Returns how many that were.
]]
-- @include counter
-- @include requests
local semaphore, latest = KEYS[1], KEYS[2]
local number, memory = ARGV[1], ARGV[2]

local answer = answered(latest, number)
if answer then
  return tonumber(answer)
end
local available = counterOf(semaphore)
if available <= 0 then
  return 0
end
remember(latest, number, available, memory)
redis.call('DECRBY', semaphore, available)
return available
