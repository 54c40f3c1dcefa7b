--[[
  Acquires the write side of read/write locks, each for an owner of its own.

  KEYS[1]       clock of the fencing tokens
  KEYS[2i]      lock
  KEYS[2i + 1]  zset: writers that wait, and until when that is believed

  ARGV[1]       lease time in ms
  ARGV[2]       highest token that the caller has seen
  ARGV[3]       tokens to reserve with each acquisition
  ARGV[4]       ms for which to announce those who have to wait; 0: leave no trace
  ARGV[4 + i]   owner

  Returns { reserved with each, answer, ... }: a token, { ttl, holder } when busy, or { { error, types of the keys } }.
]]
-- @include each
-- @include tokens
-- @include read-write
local lease, seen, reserve, placeTimeout = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local count = #ARGV - 4

local function acquire(i)
  local lock, writers, owner = KEYS[2 * i], KEYS[2 * i + 1], ARGV[4 + i]
  local busy = busyWriter(lock, owner)
  if busy then
    if placeTimeout > 0 then
      announceWriter(writers, owner, millis(), placeTimeout)
    end
    return busy
  end
  if not nextToken then
    openClock(KEYS[1], seen, reserve, count)
  end
  takeWriter(lock, owner, writers, lease)
  return drawToken()
end

local answers = { 0 }
for i = 1, count do
  answers[1 + i] = each(acquire, i, 2 * i, 2)
end
answers[1] = reserved or 0
return answers
