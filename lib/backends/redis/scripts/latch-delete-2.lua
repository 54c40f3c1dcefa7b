--[[
  Deletes a latch, and tells who waits that there is nothing to wait for. (Redisson says `1` here, which wakes nobody of its own.)

  KEYS[1]  latch: its count
  KEYS[2]  latest request of this lane

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  number of the request
  ARGV[3]  ms for which to remember it

  Returns 1, or 0 when there was none.
]]
-- @include latch
-- @include requests
local latch, latest = KEYS[1], KEYS[2]
local publish, number, memory = ARGV[1], ARGV[2], ARGV[3]

if answered(latest, number) then
  return 1
end
if not redis.call('GET', latch) then
  return 0
end
remember(latest, number, '', memory)
redis.call('DEL', latch)
tellLatch(publish, latch, '0')
return 1
