--[[
  Takes permits under ids, each with a lease, for as many groups, from the first on, as there are permits for. A repetition takes
  nothing more: groups that still have theirs get a fresh lease.

  KEYS[1]      semaphore: how many permits are available
  KEYS[2]      zset: ids of the permits that are held, and when the lease of each ends
  KEYS[3]      latest request of this lane

  ARGV[1]      server time in ms after which it is not executed
  ARGV[2]      number of the request
  ARGV[3]      ms for which to remember it
  ARGV[4]      1: an earlier copy may still be under way, so the answer is remembered whatever it is
  ARGV[5]      PUBLISH or SPUBLISH
  ARGV[6]      lease time in ms
  ARGV[7]      groups
  ARGV[7 + i]  permits of a group
  then         their ids, in hexadecimal digits

  Returns { groups that have theirs, ms after which it makes sense to ask again; −1 when no lease ends },
  or { 'expired', server time in ms } when it came too late.
]]
-- @include limit
-- @include leased-permits
-- @include requests
local semaphore, held, latest = KEYS[1], KEYS[2], KEYS[3]
local number, memory, isRepeated, publish = tonumber(ARGV[2]), ARGV[3], ARGV[4] == '1', ARGV[5]
local lease, groups = tonumber(ARGV[6]), tonumber(ARGV[7])
-- What Redisson writes for a permit without a lease.
local FOR_EVER = 922337203685477

local last = latestRequest(latest)
if last > number then
  return { 0, -1 }
end
local isRepetition = last == number
local reclaimed = reclaimPermits(semaphore, held, now)
local available = counterOf(semaphore)
local taken, served, nextId = 0, 0, 8 + groups
local ids = {}
for group = 1, groups do
  local size = tonumber(ARGV[7 + group])
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
  remember(latest, ARGV[2], '', memory)
end
if taken > 0 then
  redis.call('DECRBY', semaphore, taken)
end
for _, id in ipairs(ids) do
  redis.call('ZADD', held, now + lease, id)
end
local ttl = redis.call('PTTL', semaphore)
if ttl > 0 and served > 0 then
  redis.call('PEXPIRE', held, ttl)
end
if reclaimed > 0 then
  tellPermits(publish, semaphore, available - taken)
end
if isRepetition and served == 0 then
  return { 0, 0 }
end
local earliest = tonumber(redis.call('ZRANGE', held, 0, 0, 'WITHSCORES')[2] or FOR_EVER)
return { served, earliest < FOR_EVER and earliest - now or -1 }
