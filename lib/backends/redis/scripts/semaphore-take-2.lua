--[[
  Takes the permits of as many groups, from the first on, as there are permits for.

  KEYS[1]      semaphore: how many permits are available
  KEYS[2]      latest request of this lane

  ARGV[1]      number of the request
  ARGV[2]      ms for which to remember it
  ARGV[2 + i]  permits of a group

  Returns how many groups got theirs.
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
local taken, served = 0, 0
for i = 3, #ARGV do
  local permits = tonumber(ARGV[i])
  if taken + permits > available then
    break
  end
  taken, served = taken + permits, served + 1
end
if served > 0 then
  remember(latest, number, served, memory)
  redis.call('DECRBY', semaphore, taken)
end
return served
