--[[
  Makes more permits available, and tells who waits; or fewer, below zero if need be.

  KEYS[1]  semaphore: how many permits are available
  KEYS[2]  latest request of this lane

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  number of the request
  ARGV[3]  ms for which to remember it
  ARGV[4]  permits to add
  ARGV[5]  1: only to a semaphore that exists

  Returns 1, or 0 when it does not exist.
]]
-- @include permits
-- @include requests
local semaphore, latest = KEYS[1], KEYS[2]
local publish, number, memory, permits = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

if answered(latest, number) then
  return 1
end
if ARGV[5] == '1' and redis.call('EXISTS', semaphore) == 0 then
  return 0
end
local available = counterOf(semaphore) + permits
remember(latest, number, '', memory)
redis.call('INCRBY', semaphore, permits)
if permits > 0 then
  tellPermits(publish, semaphore, available)
end
return 1
