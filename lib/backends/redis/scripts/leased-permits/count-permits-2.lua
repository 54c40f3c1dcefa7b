--[[
  Counts permits. First makes those available whose leases have ended.

  KEYS[1]  semaphore: how many permits are available
  KEYS[2]  zset: ids of the permits that are held, and when the lease of each ends

  ARGV[1]  PUBLISH or SPUBLISH

  Returns { available, acquired }.
]]
-- @includes
local semaphore, held, publish = KEYS[1], KEYS[2], ARGV[1]

local reclaimed = reclaimPermits(semaphore, held, serverTime())
local available = countOf(semaphore)
if reclaimed > 0 then
  publishPermits(publish, semaphore, available)
end
return { available, redis.call('ZCARD', held) }
