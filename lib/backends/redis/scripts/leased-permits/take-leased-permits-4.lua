--[[
  Takes permits by their ids, each with a lease. Serves groups in order, until there are not enough permits for the next
  one. If it is repeated, groups that still have their permits get a fresh lease, and no further permits.

  KEYS[1]      semaphore: how many permits are available
  KEYS[2]      zset: ids of the permits that are held, and when the lease of each ends
  KEYS[3]      note: hash with the type and the total, for people to read
  KEYS[4]      latest request of this session

  ARGV[1]      server time in ms after which the script does nothing
  ARGV[2]      sequence number of the request
  ARGV[3]      ms for which to remember it
  ARGV[4]      1: an earlier copy may still be under way, so remember any answer
  ARGV[5]      PUBLISH or SPUBLISH
  ARGV[6]      lease time in ms
  ARGV[7]      permits of a semaphore that does not exist yet; empty: do not create it
  ARGV[8]      number of groups
  ARGV[8 + i]  permits of a group
  then         their ids, in hexadecimal digits

  Returns { groups that have their permits, ms until the earliest lease of a permit ends or NO_LEASE_ENDS (-1),
  1 when the semaphore does not exist, otherwise 0 }.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include deadline
-- @includes
local semaphore, held, note, latest = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local sequence, lifetime, isRepeated, publish = tonumber(ARGV[2]), ARGV[3], ARGV[4] == '1', ARGV[5]
local leaseTime, initial, groups = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8])
local NO_LEASE_ENDS = -1
-- The value that Redisson writes for a permit without a lease.
local FOREVER = 922337203685477

local last = latestRequest(latest)
if last > sequence then
  return { 0, NO_LEASE_ENDS, 0 }
end
local isRepetition = last == sequence
local reclaimed = reclaimPermits(semaphore, held, now)
local available, isMissing, isNew = countOf(semaphore), false, false
if available == 0 and not isRepetition and redis.call('EXISTS', semaphore) == 0 then
  available, isMissing = setUp(semaphore, note, 'permit-expirable-semaphore', initial)
  isNew = not isMissing
end
local taken, served, nextId = 0, 0, 9 + groups
local ids = {}
for group = 1, groups do
  local size = tonumber(ARGV[8 + group])
  if isRepetition then
    if not redis.call('ZSCORE', held, rawId(ARGV[nextId])) then
      break
    end
  elseif taken + size > available then
    break
  else
    taken = taken + size
  end
  for id = nextId, nextId + size - 1 do
    ids[#ids + 1] = rawId(ARGV[id])
  end
  served, nextId = served + 1, nextId + size
end
if taken > 0 or (isRepeated and not isRepetition) then
  rememberRequest(latest, ARGV[2], '', lifetime)
end
if taken > 0 then
  redis.call('DECRBY', semaphore, taken)
end
for _, id in ipairs(ids) do
  redis.call('ZADD', held, now + leaseTime, id)
end
local ttl = redis.call('PTTL', semaphore)
if ttl > 0 and served > 0 then
  redis.call('PEXPIRE', held, ttl)
end
if reclaimed > 0 or isNew then
  publishPermits(publish, semaphore, available - taken)
end
if isRepetition and served == 0 then
  return { 0, 0, 0 }
end
if served == 0 and not isMissing then
  noteType(note, 'permit-expirable-semaphore')
end
local earliest = tonumber(redis.call('ZRANGE', held, 0, 0, 'WITHSCORES')[2] or FOREVER)
return { served, earliest < FOREVER and earliest - now or NO_LEASE_ENDS, isMissing and 1 or 0 }
