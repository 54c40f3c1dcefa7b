--[[
  Acquires the read or write side of a read/write lock, or enters the line of the lock. Whoever is first in line goes
  first, and readers go past other readers. If the lock is free although others go first, serves the line, because whoever
  was told of its release may have died.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock
  KEYS[3]  lease of this owner as a reader

  ARGV[1]  server time in ms after which the script does nothing
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  tokens to reserve
  ARGV[5]  owner
  ARGV[6]  waiterTimeout: ms after which its place lapses
  ARGV[7]  PUBLISH or SPUBLISH
  ARGV[8]  1: reads, 0: writes
  ARGV[9]  1: nobody goes first

  Returns { token, reserved, 1 }, or { ttl, holder, as which type to listen to its release or '', place } when busy. The
  place is KEPT_FAR_BACK if it is kept that many times as long, and otherwise 0.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local clock, lock, reserve, owner = KEYS[1], KEYS[2], tonumber(ARGV[4]), ARGV[5]
local waiterTimeout, publish = tonumber(ARGV[6]), ARGV[7]
local reads, pastLine = ARGV[8] == '1', ARGV[9] == '1'
local line = lineOf(lock)

local function whyOwnerMustWait()
  if reads then
    return whyReaderWaits(lock, owner, pastLine)
  end
  local busy = whyWriterWaits(lock, owner)
  if busy or pastLine or isWriter(lock, owner) then
    return busy
  end
  return placeBefore(lock, owner, false, math.floor(micros / 1000))
end

local function describe()
  return reads and READS or 't write'
end

local function enterBehind(busy)
  local place = enterPlace(line, owner, micros, waiterTimeout, describe)
  local listensAs = busy[3] or ((place == 1 or reads) and isHeldByOthers((lockFields(lock))) and 'write') or ''
  return { busy[1], busy[2], listensAs, place == 1 and 0 or place }
end

-- Handles a busy lock first, because defining the functions for the rest takes time.
local busy = whyOwnerMustWait()
local isLeftToOthers = busy and redis.call('EXISTS', lock) == 0
if busy and not isLeftToOthers then
  return enterBehind(busy)
end

-- @includes
if isLeftToOthers then
  local othersFirst = serveLine(lock, publish, clock, nil, owner)
  busy = othersFirst and redis.call('EXISTS', lock) == 1 and whyOwnerMustWait() or othersFirst
end
if busy then
  return enterBehind(busy)
end

reserveTokens(clock, reserve, 1)
leaveLine(line, owner, TOLD_UNTIL)
if reads then
  takeReader(lock, owner, leaseTime)
else
  takeWriter(lock, owner, leaseTime)
end
return { nextToken(), reserved, 1 }
