--[[
  Acquires the write side of read/write locks, each for its own owner.

  KEYS[1]       clock of the fencing tokens
  KEYS[2i]      lock
  KEYS[2i + 1]  lease of this writer as a reader, if it also reads

  ARGV[1]       server time in ms after which the script does nothing
  ARGV[2]       highest token that the caller has seen
  ARGV[3]       lease time in ms
  ARGV[4]       tokens to reserve with each acquisition
  ARGV[4 + i]   owner

  Returns { reserved with each, answer, ... }, where an answer is a token, { ttl, holder, held as } when busy, or { { error,
  types of the keys } }.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local reserve = tonumber(ARGV[4])
local count = #ARGV - 4

local function acquire(i)
  local lock, owner = KEYS[2 * i], ARGV[4 + i]
  local busy = whyWriterWaits(lock, owner)
  if busy then
    return busy
  end
  if not upcoming then
    reserveTokens(KEYS[1], reserve, count)
  end
  takeWriter(lock, owner, leaseTime)
  return nextToken()
end

local answers = { 0 }
for i = 1, count do
  answers[1 + i] = answerOf(acquire, i, 2 * i, 2)
end
answers[1] = reserved or 0
return answers
