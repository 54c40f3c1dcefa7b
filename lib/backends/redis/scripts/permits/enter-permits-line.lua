--[[
  Acquires a lock that n may hold, or enters its line. Whoever is first in line goes first. Room that is left although
  somebody is first in line is granted to them, because whoever was granted it before may have died.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock

  ARGV[1]  server time in ms after which the script does nothing
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  tokens to reserve
  ARGV[5]  owner
  ARGV[6]  waiterTimeout: ms after which its place lapses
  ARGV[7]  PUBLISH or SPUBLISH
  ARGV[8]  permits: an owner may hold the lock if fewer do

  Returns { token, reserved, 1 }, or { ttl, holder, held as or '', place } when busy, with the place as enterPlace
  returns it.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local clock, lock, reserve, owner = KEYS[1], KEYS[2], tonumber(ARGV[4]), ARGV[5]
local waiterTimeout, publish, permits = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8])
local places, lapses, terms = lineOf(lock)
local now = math.floor(micros / 1000)

local function enterBehind(busy)
  local place = enterPlace(lock, owner, micros, waiterTimeout, nil, permits)
  return { busy[1], busy[2] or '', busy[3] or '', place }
end

-- Handles a busy lock first, because defining the functions for the rest takes time.
local busy = whyPermitWaits(lock, owner, permits, now)
if busy then
  return enterBehind(busy)
end

-- @includes
-- Whoever was granted a permit before takes it now, and leaves the room for others as it is.
local first = not holdsPermit(lock, owner, now) and firstInLine(places, lapses, terms, now)
if first and first ~= owner then
  local told = serveLine(lock, publish)
  busy = whyPermitWaits(lock, owner, permits, now) or told or whyHeadStartWaits(lock, lapses, now)
end
if busy then
  return enterBehind(busy)
end

leaveLine(places, lapses, terms, owner)
reserveTokens(clock, reserve, 1)
takePermit(lock, owner, leaseTime, now)
return { nextToken(), reserved, 1 }
