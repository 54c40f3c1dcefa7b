--[[
  Sets how many permits there are, those that are held included, and tells who waits when there are more than before.

  KEYS[1]  semaphore: how many permits are available
  KEYS[2]  zset: ids of the permits that are held, and when the lease of each ends
  KEYS[3]  latest request of this lane

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  number of the request
  ARGV[3]  ms for which to remember it
  ARGV[4]  permits

  Returns 1.
]]
-- @include leased-permits
-- @include requests
local semaphore, held, latest = KEYS[1], KEYS[2], KEYS[3]
local publish, number, memory, permits = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

if answered(latest, number) then
  return 1
end
local reclaimed = reclaimPermits(semaphore, held, millis())
local available = permits - redis.call('ZCARD', held)
local added = available - counterOf(semaphore)
remember(latest, number, '', memory)
redis.call('INCRBY', semaphore, added)
if reclaimed > 0 or added > 0 then
  tellPermits(publish, semaphore, available)
end
return 1
