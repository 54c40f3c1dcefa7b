--[[
  Acquires locks, each for its own owner. An owner that already holds its lock gets a fresh lease.

  A kind of lock defines
    count                               how many owners there are, as the last arguments
    option                              what else it has to know
    whyWaits(lock, owner, option, now)  why the owner cannot have the lock, or nil if it can
    take(lock, owner, leaseTime, now)   makes it an owner of the lock
  It may set `former` to the value that the clock had before, if it has set it to `micros`.

  KEYS[1]  clock of the fencing tokens

  ARGV[1]  server time in ms after which the script does nothing
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  tokens to reserve with each acquisition

  Returns { reserved with each, answer, ... }, where an answer is a token, { ttl, holder, held as } when busy, or
  { { error, types of the keys } }.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local reserve, now = tonumber(ARGV[4]), math.floor(micros / 1000)
local former

-- @kind

local function acquire(i, first)
  local lock, owner = KEYS[first], ARGV[#ARGV - count + i]
  local busy = whyWaits(lock, owner, option, now)
  if busy then
    return busy
  end
  if not upcoming then
    reserveTokens(KEYS[1], reserve, count, former)
  end
  take(lock, owner, leaseTime, now)
  return nextToken()
end

local answers = { 0 }
local keysOfEach = (#KEYS - 1) / count
for i = 1, count do
  answers[1 + i] = answerOf(acquire, i, keysOfEach * (i - 1) + 2, keysOfEach)
end
answers[1] = reserved or 0
return answers
