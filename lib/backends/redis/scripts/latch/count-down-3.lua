--[[
  Counts a latch down. At zero, deletes the latch and notifies its waiters.

  KEYS[1]  latch: its count
  KEYS[2]  its note
  KEYS[3]  latest request of this session

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  sequence number of the request
  ARGV[3]  ms for which to remember it
  ARGV[4]  steps

  Returns 1, or 0 when the latch had no count.
]]
-- @includes
local latch, note, latest = KEYS[1], KEYS[2], KEYS[3]
local publish, sequence, lifetime, steps = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

if earlierAnswer(latest, sequence) then
  return 1
end
local count = countOf(latch)
if count == 0 then
  return 0
end
rememberAlthoughFull(latest, sequence, '', lifetime)
if count > steps then
  redis.call('DECRBY', latch, steps)
else
  redis.call('DEL', latch, note)
  publishToLatch(publish, latch, '0')
end
return 1
