--[[
  Acquires re-entrant locks, each for its own owner. An owner that already holds its lock gets a fresh lease.

  KEYS[1]      clock of the fencing tokens
  KEYS[1 + i]  lock

  ARGV[1]      server time in ms after which the script does nothing
  ARGV[2]      highest token that the caller has seen
  ARGV[3]      lease time in ms
  ARGV[4]      tokens to reserve with each acquisition
  ARGV[4 + i]  owner

  Returns { reserved with each, answer, ... }, where an answer is a token, { ttl, holder, held as } when busy, or { { error, type
  of the lock } }. If all locks were free and no tokens are reserved, returns only the first token, because Redis sends
  a number faster than a list. The other tokens follow consecutively.
  Returns { 'expired', server time in ms } when it runs too late to acquire anything. If all locks are busy, it answers
  so without reading the time, which makes waiting cheaper.
]]
-- @include acquisition-arguments
-- @includes
local call = redis.call
local reserve = tonumber(ARGV[4])
local count = #ARGV - 4
local micros, former
-- Only for a single lock, whose lease is read once.
local onlyTtl = count == 1 and call('PTTL', KEYS[2])

-- The common case: one free lock, and a clock that is behind TIME. It creates no functions and formats no numbers,
-- because that takes longer than the commands. The code below needs `former` for all other cases.
if onlyTtl == NO_KEY and reserve == 0 then
  local time = call('TIME')
  local seconds, fraction = time[1], time[2]
  micros = seconds * 1000000 + fraction
  if micros > ARGV[1] * 1000 then
    return { 'expired', math.floor(micros / 1000) }
  end
  if micros > seen and #fraction == 6 then
    former = call('GETSET', KEYS[1], seconds .. fraction)
    if former and tonumber(former) < micros then
      call('HSET', KEYS[2], ARGV[5], '1')
      expire(KEYS[2], lease)
      return micros
    end
  end
end

-- @includes
local answers = { 0 }
local taken, expired

-- Reads the server's time and reserves the tokens before the first lock is written. Returns false if it is too late.
-- Then `expired` is the reply.
local function begin()
  if not micros then
    local time = call('TIME')
    micros = time[1] * 1000000 + time[2]
    if micros > ARGV[1] * 1000 then
      expired = { 'expired', math.floor(micros / 1000) }
    end
  end
  if not expired and not upcoming then
    reserveTokens(KEYS[1], reserve, count, former)
  end
  return not expired
end

-- Whether a batch names each lock once, and all are free. One command finds that out, which is faster than one for each.
-- Without the right to EXISTS, they are looked at one by one.
local function areFree()
  local named = {}
  for i = 2, count + 1 do
    if named[KEYS[i]] then
      return false
    end
    named[KEYS[i]] = true
  end
  return redis.pcall('EXISTS', unpack(KEYS, 2)) == 0
end

-- Handles free locks before the functions for the others are defined, because this path must be fast.
if reserve == 0 and count > 1 and areFree() then
  if not begin() then
    return expired
  end
  for i = 1, count do
    call('HSET', KEYS[1 + i], ARGV[4 + i], '1')
    expire(KEYS[1 + i], lease)
  end
  return upcoming
end
for i = 1, count do
  local lock = KEYS[1 + i]
  local ttl = onlyTtl or call('PTTL', lock)
  if ttl == NO_KEY then
    if not begin() then
      return expired
    end
    call('HSET', lock, ARGV[4 + i], '1')
    expire(lock, lease)
    answers[1 + i] = nextToken()
  else
    taken = taken or {}
    taken[#taken + 1] = { i, ttl }
  end
end

if not taken then
  if reserved == 0 then
    return answers[2]
  end
  answers[1] = reserved
  return answers
end

-- @includes
local function acquire(item)
  local i, ttl = item[1], item[2]
  local lock, owner = KEYS[1 + i], ARGV[4 + i]
  local busy = whyOwnerWaits(lock, owner, ttl)
  if busy then
    return busy
  end
  if not begin() then
    return nil
  end
  takePlain(lock, owner, lease)
  return nextToken()
end

for _, item in ipairs(taken) do
  local i = item[1]
  answers[1 + i] = answerOf(acquire, item, 1 + i, 1)
  if expired then
    return expired
  end
end
answers[1] = reserved or 0
return answers
