--[[
  Acquires the write side of read/write locks, each for its own owner.

  KEYS[1]       clock of the fencing tokens
  KEYS[3i - 1]  lock
  KEYS[3i]      lease of this writer as a reader, if it also reads
  KEYS[3i + 1]  zset: waiting writers, and the time until which each counts as alive

  ARGV[1]       server time in ms after which the script does nothing
  ARGV[2]       highest token that the caller has seen
  ARGV[3]       lease time in ms
  ARGV[4]       tokens to reserve with each acquisition
  ARGV[5]       waiterTimeout: ms for which to announce a writer that has to wait; 0: do not announce it
  ARGV[5 + i]   owner

  Returns { reserved with each, answer, ... }, where an answer is a token, { ttl, holder, held as } when busy, or { { error,
  types of the keys } }.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @include ttl-replies
-- @include suffixed
-- @include expire
-- @include answer-of
-- @include tokens
-- @include is-owner
-- @include permits/first-to-end
-- @include lock-fields
-- @include holder
-- @include read-write/read-lease
-- @include has-field
-- @include read-write/is-writer
-- @include read-write/holds-in
-- @include read-write/longest-hold
-- @include read-write/longest-reader
-- @include read-write/permit-in-way
-- @include read-write/why-writer-waits
-- @include read-write/set-write-lease
-- @include read-write/take-writer
-- @include add-unless-full
-- @include read-write/announce-writer
local reserve, waiterTimeout = tonumber(ARGV[4]), tonumber(ARGV[5])
local count = #ARGV - 5

local function acquire(i)
  local lock, writers, owner = KEYS[3 * i - 1], KEYS[3 * i + 1], ARGV[5 + i]
  local busy = whyWriterWaits(lock, owner)
  if busy then
    if waiterTimeout > 0 then
      announceWriter(writers, owner, math.floor(micros / 1000), waiterTimeout)
    end
    return busy
  end
  if not upcoming then
    reserveTokens(KEYS[1], reserve, count)
  end
  takeWriter(lock, owner, writers, leaseTime)
  return nextToken()
end

local answers = { 0 }
for i = 1, count do
  answers[1 + i] = answerOf(acquire, i, 3 * i - 1, 3)
end
answers[1] = reserved or 0
return answers
