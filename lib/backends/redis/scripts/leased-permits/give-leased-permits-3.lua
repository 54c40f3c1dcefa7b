--[[
  Gives permits back by their ids, and notifies waiters. A permit whose lease has ended is no longer held.

  KEYS[1]      semaphore: how many permits are available
  KEYS[2]      zset: ids of the permits that are held, and when the lease of each ends
  KEYS[3]      latest request of this session

  ARGV[1]      PUBLISH or SPUBLISH
  ARGV[2]      sequence number of the request
  ARGV[3]      ms for which to remember it
  ARGV[3 + i]  id, in hexadecimal digits

  Returns a string with a digit for each id: 1, or 0 when it was not held.
]]
-- @includes
local semaphore, held, latest = KEYS[1], KEYS[2], KEYS[3]
local publish, sequence, lifetime = ARGV[1], ARGV[2], ARGV[3]

local answer = earlierAnswer(latest, sequence)
if answer then
  return answer
end
local reclaimed = reclaimPermits(semaphore, held, serverTime())
local given, ids, digits = {}, {}, {}
for i = 4, #ARGV do
  local id = rawId(ARGV[i])
  if not given[id] and redis.call('ZSCORE', held, id) then
    given[id] = true
    ids[#ids + 1] = id
    digits[#digits + 1] = '1'
  else
    digits[#digits + 1] = '0'
  end
end
answer = table.concat(digits)
local available = countOf(semaphore) + #ids
if #ids > 0 then
  rememberAlthoughFull(latest, sequence, answer, lifetime)
  redis.call('INCRBY', semaphore, #ids)
  for _, id in ipairs(ids) do
    redis.call('ZREM', held, id)
  end
end
if reclaimed + #ids > 0 then
  publishPermits(publish, semaphore, available)
end
return answer
