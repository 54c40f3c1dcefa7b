--[[
  Counts permits. Those whose lease has ended are made available first.

  KEYS[1]  semaphore: how many permits are available
  KEYS[2]  zset: ids of the permits that are held, and when the lease of each ends

  ARGV[1]  PUBLISH or SPUBLISH

  Returns { available, acquired }.
]]
-- @include leased-permits
local semaphore, held = KEYS[1], KEYS[2]

local reclaimed = reclaimPermits(semaphore, held, millis())
local available = counterOf(semaphore)
if reclaimed > 0 then
  tellPermits(ARGV[1], semaphore, available)
end
return { available, redis.call('ZCARD', held) }
