--[[
  Keeps places in the line of one lock. If there is room for the first place, serves the line again, because whoever was
  granted the lock or told of it before may have died. If the first place is kept and somebody holds the lock whose release
  does not serve the line, tells it, so that it listens to that release: it may have been behind a place that has lapsed.

  KEYS[1]      lock

  ARGV[1]      PUBLISH or SPUBLISH
  ARGV[2]      waiterTimeout: ms for which to keep them. Places far back are kept KEPT_FAR_BACK times as long, because those
               in front of them notice if the lock is free
  ARGV[2 + i]  owner

  Returns an answer for each: how many times waiterTimeout it is kept, or 0 when it had no place any more.
]]
-- @includes
local lock, publish, waiterTimeout = KEYS[1], ARGV[1], tonumber(ARGV[2])
local places, lapses, terms = lineOf(lock)
local now = serverTime()
local kept, longest, keepsFirst = {}, 0, false
local first, lapse = firstInLine(places, lapses, terms, now)

for i = 3, #ARGV do
  local owner = ARGV[i]
  local ends = redis.call('ZSCORE', lapses, owner)
  local times = 0
  if ends and tonumber(ends) > now then
    times = timesKept(places, redis.call('ZSCORE', places, owner) or 0)
    -- Its fraction says how many permits the place wants.
    writeAlthoughFull(lapses, 'ZADD', lapses, now + waiterTimeout * times + ends % 1, owner)
  end
  kept[i - 2], longest, keepsFirst = times, math.max(longest, times), keepsFirst or (times > 0 and owner == first)
end
if longest > 0 then
  keepLine(lock, places, lapses, terms, waiterTimeout * longest)
end
-- A lock that n may hold has no fields, and nobody else uses it.
local wantsPermit = first and lapse % 1 > 0
local isHash = not wantsPermit and typeOf(lock) == 'hash'
-- Handles most places first, because defining the functions for the rest takes a sixth of the time: they are not the first
-- in line, and there is no room beside the holder.
if not first or (isHash and not keepsFirst and redis.call('HGET', lock, 'mode') ~= 'read') then
  return kept
end

-- @include line/time-of-grant
-- @includes
if keepsFirst and isHash and isHeldByOthers(redis.call('HKEYS', lock)) then
  serveLine(lock, publish)
else
  serveIfRoom(lock, publish, first, lapse, now)
end
return kept
