--[[
  Adds permits to a semaphore, and notifies waiters. A negative number removes permits. The result may be below zero.

  KEYS[1]  semaphore: how many permits are available
  KEYS[2]  note: hash with the type and the total, for people to read
  KEYS[3]  latest request of this session

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  sequence number of the request
  ARGV[3]  ms for which to remember it
  ARGV[4]  permits to add
  ARGV[5]  1: only to a semaphore that exists
  ARGV[6]  its type, if the total number of permits changes; empty: permits are given back

  Returns 1, or 0 when it does not exist.
]]
-- @includes
local semaphore, note, latest = KEYS[1], KEYS[2], KEYS[3]
local publish, sequence, lifetime, permits = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local kind = ARGV[6]

local function noteChange()
  if redis.call('EXISTS', semaphore) == 0 then
    return noteCounter(note, kind, permits)
  end
  noteType(note, kind)
  local total = tonumber(redis.pcall('HGET', note, 'total'))
  if total then
    redis.pcall('HSET', note, 'total', total + permits)
  end
end

if earlierAnswer(latest, sequence) then
  return 1
end
if ARGV[5] == '1' and redis.call('EXISTS', semaphore) == 0 then
  return 0
end
local available = countOf(semaphore) + permits
rememberAlthoughFull(latest, sequence, '', lifetime)
if kind ~= '' then
  noteChange()
end
redis.call('INCRBY', semaphore, permits)
if permits > 0 then
  publishPermits(publish, semaphore, available)
end
return 1
