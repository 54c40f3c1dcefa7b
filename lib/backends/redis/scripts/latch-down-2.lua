--[[
  Counts a latch down. At zero it is gone, and who waits is told.

  KEYS[1]  latch: its count
  KEYS[2]  latest request of this lane

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  number of the request
  ARGV[3]  ms for which to remember it
  ARGV[4]  steps

  Returns 1, or 0 when it had no count.
]]
-- @include latch
-- @include requests
local latch, latest = KEYS[1], KEYS[2]
local publish, number, memory, steps = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

if answered(latest, number) then
  return 1
end
local count = counterOf(latch)
if count == 0 then
  return 0
end
remember(latest, number, '', memory)
if count > steps then
  redis.call('DECRBY', latch, steps)
else
  redis.call('DEL', latch)
  tellLatch(publish, latch, '0')
end
return 1
