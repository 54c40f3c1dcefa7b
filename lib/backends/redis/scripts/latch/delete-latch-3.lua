--[[
  Deletes a latch, and wakes its waiters. (Redisson publishes `1` here, which does not wake its own waiters.)

  KEYS[1]  latch: its count
  KEYS[2]  its note
  KEYS[3]  latest request of this session

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  sequence number of the request
  ARGV[3]  ms for which to remember it

  Returns 1, or 0 when it did not exist.
]]
-- @includes
local latch, note, latest = KEYS[1], KEYS[2], KEYS[3]
local publish, sequence, lifetime = ARGV[1], ARGV[2], ARGV[3]

if earlierAnswer(latest, sequence) then
  return 1
end
if not redis.call('GET', latch) then
  return 0
end
rememberAlthoughFull(latest, sequence, '', lifetime)
redis.call('DEL', latch, note)
publishToLatch(publish, latch, '0')
return 1
