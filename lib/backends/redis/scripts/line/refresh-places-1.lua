--[[
  Keeps places in the line of one lock. If there is room for somebody in it, serves the line again, because whoever was
  granted the lock or told of it before may have died. If the first place is kept and somebody holds the lock whose release
  does not serve the line, tells it, so that it listens to that release: it may have been behind a place that has lapsed.

  KEYS[1]      lock

  ARGV[1]      PUBLISH or SPUBLISH
  ARGV[2]      clock of the fencing tokens
  ARGV[3]      waiterTimeout: ms for which to keep them. Places far back are kept KEPT_FAR_BACK times as long, because those
               in front of them notice if the lock is free
  ARGV[2 + 2i] owner
  ARGV[3 + 2i] the nonce of its place from now on, or ''

  Returns an answer for each: how many times waiterTimeout it is kept, or 0 when it had no place any more.
]]
-- @includes
local lock, publish, clock, waiterTimeout = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local line = lineOf(lock)
local time = redis.call('TIME')
-- `seen` is set for a grant.
local micros, seen = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)
local kept, longest, keepsFirst = {}, 0, false
local first = firstInLine(line, now)

-- Whether it is granted the lock or told may have changed, since the user's rights may have.
local function keep(place, nonce)
  local times = timesKept(line.places, redis.call('ZSCORE', line.places, place.owner))
  local lasts = waiterTimeout * times
  if place.kind then
    local listeners = listenersInLine(line, publish, clock, { place.owner })
    local isCounted = listeners and listeners[2] > 0
    local terms = termsOfPlace(micros, place.kind, isCounted, place.wants, lasts, place.permits or 0, place.reserve,
      place.highest, nonce)
    writeAlthoughFull(line.lapses, 'HSET', line.terms, place.owner, terms)
  end
  writeAlthoughFull(line.lapses, 'ZADD', line.lapses, now + lasts + place.lapse % 1, place.owner)
  return times
end

for i = 4, #ARGV, 2 do
  local place = placeOf(line, ARGV[i], now)
  local times = place and keep(place, ARGV[i + 1]) or 0
  if not place then
    leaveLine(line, ARGV[i])
  end
  kept[i / 2 - 1], longest, keepsFirst = times, math.max(longest, times), keepsFirst or (place and place.owner == first.owner)
end
if longest > 0 then
  keepLine(line, waiterTimeout * longest)
end
local isHash = typeOf(lock) == 'hash'
local isHeldAlone = isHash and redis.call('HGET', lock, 'mode') ~= 'read'
-- Handles most places first, because defining the functions for the rest takes a sixth of the time: they are not the first
-- in line, and there is no room beside the holder.
if not first or (isHeldAlone and not keepsFirst) then
  return kept
end

-- @includes
if keepsFirst and isHash and isHeldByOthers(redis.call('HKEYS', lock)) then
  tellLine(lock, publish, clock)
elseif not isHeldAlone then
  serveLine(lock, publish, clock)
end
return kept
