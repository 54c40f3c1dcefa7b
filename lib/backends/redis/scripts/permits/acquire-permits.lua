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
  of the lock } }.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @include ttl-replies
-- @include expire
-- @include answer-of
-- @include tokens
-- @include is-owner
-- @include permits/first-to-end
-- @include lock-fields
-- @include holder
-- @include permits/holds-permit
-- @include permits/why-permit-waits
-- @include permits/fit-to-permits
-- @include permits/take-permit
local reserve, permits = tonumber(ARGV[4]), tonumber(ARGV[5])
local count = #ARGV - 5
local now = math.floor(micros / 1000)

local function acquire(i)
  local lock, owner = KEYS[1 + i], ARGV[5 + i]
  local busy = whyPermitWaits(lock, owner, permits, now)
  if busy then
    return busy
  end
  if not upcoming then
    reserveTokens(KEYS[1], reserve, count)
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
