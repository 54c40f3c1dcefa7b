--[[
  Gives a latch its count, unless it has one.

  KEYS[1]  latch: its count
  KEYS[2]  latest request of this lane

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  number of the request
  ARGV[3]  ms for which to remember it
  ARGV[4]  count

  Returns 1, or 0 when it had one.
]]
-- @include latch
-- @include requests
local latch, latest = KEYS[1], KEYS[2]
local publish, number, memory, count = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if answered(latest, number) then
  return 1
end
if redis.call('GET', latch) then
  return 0
end
remember(latest, number, '', memory)
redis.call('SET', latch, count)
tellLatch(publish, latch, '1')
return 1
