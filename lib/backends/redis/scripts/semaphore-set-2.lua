--[[
  Sets the permits of a semaphore that has none yet, and tells who waits.

  KEYS[1]  semaphore: how many permits are available
  KEYS[2]  latest request of this lane

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  number of the request
  ARGV[3]  ms for which to remember it
  ARGV[4]  permits

  Returns 1, or 0 when they were set already.
]]
-- @include permits
-- @include requests
local semaphore, latest = KEYS[1], KEYS[2]
local publish, number, memory, permits = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if answered(latest, number) then
  return 1
end
if redis.call('GET', semaphore) then
  return 0
end
remember(latest, number, '', memory)
redis.call('SET', semaphore, permits)
tellPermits(publish, semaphore, tonumber(permits))
return 1
