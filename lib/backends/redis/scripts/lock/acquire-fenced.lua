--[[
  Acquires fenced locks. Each is a re-entrant lock with a token counter, which Redisson's RFencedLock uses as well.

  KEYS[1]       clock of the fencing tokens
  KEYS[2i]      lock
  KEYS[2i + 1]  its token counter

  ARGV[1]       server time in ms after which the script does nothing
  ARGV[2]       highest token that the caller has seen
  ARGV[3]       lease time in ms
  ARGV[4]       tokens to reserve with each acquisition
  ARGV[4 + i]   owner

  Returns { 0, answer, ... }, where an answer is { token, reserved, 1 }, { ttl, holder, held as } when busy, or { { error, types
  of the keys } }.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local reserve = tonumber(ARGV[4])

local function acquire(i)
  local lock, counter, owner = KEYS[2 * i], KEYS[2 * i + 1], ARGV[4 + i]
  local busy = whyOwnerWaits(lock, owner)
  if busy then
    return busy
  end
  reserveFencedTokens(counter, KEYS[1], reserve)
  takePlain(lock, owner, lease)
  return { nextToken(), reserved, 1 }
end

local answers = { 0 }
for i = 1, #ARGV - 4 do
  answers[1 + i] = answerOf(acquire, i, 2 * i, 2)
end
return answers
