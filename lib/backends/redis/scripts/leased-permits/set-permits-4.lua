--[[
  Sets the total number of permits, including those that are held. Notifies waiters if there are more than before.

  KEYS[1]  semaphore: how many permits are available
  KEYS[2]  zset: ids of the permits that are held, and when the lease of each ends
  KEYS[3]  note: hash with the type and the total, for people to read
  KEYS[4]  latest request of this session

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  sequence number of the request
  ARGV[3]  ms for which to remember it
  ARGV[4]  permits

  Returns 1.
]]
-- @includes
local semaphore, held, note, latest = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local publish, sequence, lifetime, permits = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

if earlierAnswer(latest, sequence) then
  return 1
end
local reclaimed = reclaimPermits(semaphore, held, serverTime())
local available = permits - redis.call('ZCARD', held)
local added = available - countOf(semaphore)
rememberRequest(latest, sequence, '', lifetime)
redis.call('INCRBY', semaphore, added)
noteType(note, 'permit-expirable-semaphore')
if reclaimed > 0 or added > 0 then
  publishPermits(publish, semaphore, available)
end
return 1
