--[[
  Sets the permits of a semaphore or the count of a latch, unless it already has one, and notifies waiters.

  KEYS[1]  semaphore or latch
  KEYS[2]  note: hash with the type and the total, for people to read
  KEYS[3]  latest request of this session

  ARGV[1]  PUBLISH or SPUBLISH; empty: notify nobody
  ARGV[2]  sequence number of the request
  ARGV[3]  ms for which to remember it
  ARGV[4]  permits or count
  ARGV[5]  channel
  ARGV[6]  message
  ARGV[7]  type

  Returns 1, or 0 when it already had a number.
]]
-- @includes
local key, note, latest = KEYS[1], KEYS[2], KEYS[3]
local publish, sequence, lifetime, count = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local channel, message, kind = ARGV[5], ARGV[6], ARGV[7]

if earlierAnswer(latest, sequence) then
  return 1
end
if redis.call('GET', key) then
  noteType(note, kind)
  return 0
end
rememberRequest(latest, sequence, '', lifetime)
redis.call('SET', key, count)
noteCounter(note, kind, count)
publishTo(publish, channel, message)
return 1
