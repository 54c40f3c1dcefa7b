--[[
  Acquires a lock that n may hold, or enters its line. Places that want a permit, too, and are in front go first. Room that
  is left for them is granted to them, because whoever was granted it before may have died.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock

  ARGV[1]  server time in ms after which the script does nothing
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  tokens to reserve
  ARGV[5]  owner
  ARGV[6]  waiterTimeout: ms after which its place lapses
  ARGV[7]  PUBLISH or SPUBLISH
  ARGV[8]  nonce of its place, or ''
  ARGV[9]  for how many ms its place is granted the lock
  ARGV[10] permits: an owner may hold the lock if fewer do

  Returns { token, reserved, 1 }, or { ttl, holder, held as or '', place } when busy, with the place as enterPlace
  returns it.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local clock, lock, reserve, owner = KEYS[1], KEYS[2], tonumber(ARGV[4]), ARGV[5]
local waiterTimeout, publish, permits = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[10])
local line = lineOf(lock)
local now = math.floor(micros / 1000)

local function describe(keep)
  local listeners = listenersInLine(line, publish, clock, { owner })
  local isCounted = listeners and listeners[2] > 0
  return termsOfPlace(micros, 'p', isCounted, ARGV[9], keep, permits, reserve, ARGV[2], ARGV[8])
end

local function enterBehind(busy)
  return { busy[1], busy[2] or '', busy[3] or '', enterPlace(line, owner, micros, waiterTimeout, describe, permits) }
end

-- Handles a busy lock first, because defining the functions for the rest takes time.
local busy = whyPermitWaits(lock, owner, permits, now)
if busy then
  return enterBehind(busy)
end

-- @includes
-- Whoever was granted a permit before takes it now, and leaves the room for others as it is.
if not holdsPermit(lock, owner, now) then
  local othersFirst = serveLine(lock, publish, clock, nil, owner)
  busy = whyPermitWaits(lock, owner, permits, now) or othersFirst
end
if busy then
  return enterBehind(busy)
end

local wasInLine = leaveLine(line, owner, TOLD_UNTIL) == 1
reserveTokens(clock, reserve, 1)
takePermit(lock, owner, leaseTime, now)
local taken = { nextToken(), reserved, 1 }
-- Several leases may have ended, and nobody else in line notices that before its next refresh. The permit is taken even if
-- the others cannot be served.
if wasInLine then
  pcall(serveLine, lock, publish, clock)
end
return taken
