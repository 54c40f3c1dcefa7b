--[[
  Acquires the write side of read/write locks, each for an owner of its own.

  KEYS[1]       clock of the fencing tokens
  KEYS[2i]      lock
  KEYS[2i + 1]  zset: writers that wait, and until when that is believed

  ARGV[1]       server time in ms after which it is not executed
  ARGV[2]       highest token that the caller has seen
  ARGV[3]       lease time in ms
  ARGV[4]       tokens to reserve with each acquisition
  ARGV[5]       ms for which to announce those who have to wait; 0: leave no trace
  ARGV[5 + i]   owner

  Returns { reserved with each, answer, ... }: a token, { ttl, holder } when busy, or { { error, types of the keys } }.
  { 'expired', server time in ms } when it came too late.
]]
-- @include request
-- @include each
-- @include tokens
-- @include read-write
local reserve, placeTimeout = tonumber(ARGV[4]), tonumber(ARGV[5])
local count = #ARGV - 5

local function acquire(i)
  local lock, writers, owner = KEYS[2 * i], KEYS[2 * i + 1], ARGV[5 + i]
  local busy = busyWriter(lock, owner)
  if busy then
    if placeTimeout > 0 then
      announceWriter(writers, owner, math.floor(micros / 1000), placeTimeout)
    end
    return busy
  end
  if not nextToken then
    openClock(KEYS[1], reserve, count)
  end
  takeWriter(lock, owner, writers, leaseTime)
  return drawToken()
end

local answers = { 0 }
for i = 1, count do
  answers[1 + i] = each(acquire, i, 2 * i, 2)
end
answers[1] = reserved or 0
return answers
