--[[
  Acquires a re-entrant or fenced lock, or enters its line. Whoever is first in line goes first. A lock that is free
  although somebody is first in line is granted to them, or they are told, because whoever knew of its release may have died.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock
  KEYS[3]  token counter of a fenced lock

  ARGV[1]  server time in ms after which the script does nothing
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  tokens to reserve
  ARGV[5]  owner
  ARGV[6]  waiterTimeout: ms after which its place lapses
  ARGV[7]  PUBLISH or SPUBLISH
  ARGV[8]  nonce of its place, or ''
  ARGV[9]  for how many ms its place is granted the lock
  ARGV[10] only if the newest caller supersedes the one before: how many calls its process has superseded
  ARGV[11] with ARGV[10]: the order that an earlier request of the same call was given, or ''

  Returns { token, reserved, 1 }, or { ttl, holder or '', held as or '', place } when busy, with the place as
  enterPlace returns it. Without a holder, the lock is left to clients outside the line for that time.
  With ARGV[10], { token, reserved, superseded } and { ..., superseded, order }: how many calls this one has superseded, and
  its order among them. -1 calls when it is busy because a later call has superseded it, and when it was granted the lock
  before a later call came.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local clock, lock, counter = KEYS[1], KEYS[2], KEYS[3]
local reserve, owner, waiterTimeout, publish = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), ARGV[7]
local superseded, order = ARGV[10], tonumber(ARGV[11])
local line = lineOf(lock)

local function describe(keep)
  local listeners = listenersInLine(line, publish, clock, { owner })
  local isCounted = listeners and listeners[2] > 0
  return termsOfPlace(micros, counter and 'f' or 'r', isCounted, ARGV[9], keep, 0, reserve, ARGV[2], ARGV[8])
end

local function enterBehind(busy)
  local place = enterPlace(line, owner, micros, waiterTimeout, describe)
  return { busy[1], busy[2] or '', busy[3] or '', place, superseded, order }
end

-- Handles a busy lock first, because defining the functions for the rest takes an eighth of the time.
local busy = whyOwnerWaits(lock, owner)
if busy and not superseded then
  return enterBehind(busy)
end

-- @includes
if superseded then
  superseded, order = enterAsNewest(lock, publish, owner, tonumber(superseded), order, micros, waiterTimeout, describe)
  if superseded == -1 and (busy or redis.call('EXISTS', lock) == 0) then
    return { busy and busy[1] or 0, busy and busy[2] or '', '', 0, -1 }
  end
end
if not busy and redis.call('EXISTS', lock) == 0 then
  local othersFirst = serveLine(lock, publish, clock, nil, owner)
  busy = othersFirst and (whyOwnerWaits(lock, owner) or othersFirst)
end
if busy then
  return enterBehind(busy)
end

leaveLine(line, owner, TOLD_UNTIL)
if counter then
  reserveFencedTokens(counter, clock, reserve)
else
  reserveTokens(clock, reserve, 1)
end
takePlain(lock, owner, lease)
return { nextToken(), reserved, superseded or 1 }
