--[[
  Acquires locks that n may hold, each for its own owner. An owner that already holds its lock gets a fresh lease.

  KEYS[1]      clock of the fencing tokens
  KEYS[1 + i]  lock

  ARGV[1]      server time in ms after which the script does nothing
  ARGV[2]      highest token that the caller has seen
  ARGV[3]      lease time in ms
  ARGV[4]      tokens to reserve with each acquisition
  ARGV[5]      permits: an owner may hold the lock if fewer do
  ARGV[5 + i]  owner

  Returns { reserved with each, answer, ... }, where an answer is a token, { ttl, holder, held as } when busy, or { { error, type
  of the lock } }. For a single lock that nobody held, and without reserved tokens, returns only its token.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local reserve, permits = tonumber(ARGV[4]), tonumber(ARGV[5])
local count = #ARGV - 5
local now = math.floor(micros / 1000)
local former

-- The common case, which has to be fast: see acquire-reentrant.
if count == 1 and reserve == 0 and micros > seen and #time[2] == 6 and redis.call('PTTL', KEYS[2]) == NO_KEY then
  former = redis.call('GETSET', KEYS[1], time[1] .. time[2])
  if former and tonumber(former) < micros then
    redis.call('ZADD', KEYS[2], now + leaseTime, ARGV[6])
    expire(KEYS[2], lease)
    return micros
  end
end

-- @includes

local function acquire(i)
  local lock, owner = KEYS[1 + i], ARGV[5 + i]
  local busy = whyPermitWaits(lock, owner, permits, now)
  if busy then
    return busy
  end
  if not upcoming then
    reserveTokens(KEYS[1], reserve, count, former)
  end
  takePermit(lock, owner, leaseTime, now)
  return nextToken()
end

local answers = { 0 }
for i = 1, count do
  answers[1 + i] = answerOf(acquire, i, 1 + i, 1)
end
answers[1] = reserved or 0
return answers
