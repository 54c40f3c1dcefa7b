-- Reads the terms of a place. They may have been written by anybody, so each of them is checked, and none names a key.
--   t read, t write  it is told when it may ask
--   l ...            it is granted the lock: see terms-of-place.lua
--   g ...            of an earlier version: it is told, because that version takes a grant for one of a second
-- A place of that version that wants one of n permits has no terms. It notes n in the time at which it lapses: as a
-- fraction, in 2048ths of a ms. So do all, because that version reads only this.
local PERMIT = 1 / 2048
local READS = 't read'
local GRANTED = '^l ([rfp]) ([01]) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) ([%w-]+)$'

-- Who has no nonce does not begin without asking.
local NO_NONCE = '-'
-- The shortest and longest lease of a grant in ms: in line-backend.ts as well.
local SHORTEST_GRANT, LONGEST_GRANT = 1000, 3600000
-- No line needs more than this, in ms or in number. What was seen is not much ahead of the server's time, in µs.
local MOST, MOST_AHEAD = 1000000000, 3600000000

local function isAtMost(most, ...)
  for _, number in ipairs({ ... }) do
    if tonumber(number) > most then
      return false
    end
  end
  return true
end

-- A place that is granted the lock has a `lease`, and one that wants a permit has `permits`.
local function readTerms(terms, lapse, now)
  if not terms then
    return lapse % 1 > 0 and { permits = lapse % 1 / PERMIT } or nil
  elseif terms == READS then
    return { reads = true }
  elseif terms == 't write' or string.find(terms, '^g ') then
    return {}
  end
  local kind, isCounted, lease, keep, permits, reserve, highest, since, server, nonce = string.match(terms, GRANTED)
  if not kind or #terms > 300 or not isAtMost(MOST, lease, keep, permits, reserve)
    or not isAtMost(now * 1000 + MOST_AHEAD, highest, since) then
    return nil
  end
  local place = { permits = kind == 'p' and tonumber(permits) or nil }
  if isCounted == '1' then
    place.lease = math.min(LONGEST_GRANT, math.max(SHORTEST_GRANT, tonumber(lease)))
  end
  place.wants = tonumber(lease)
  place.kind, place.keep, place.reserve, place.highest = kind, tonumber(keep), tonumber(reserve), tonumber(highest)
  place.since, place.server, place.nonce = tonumber(since), server, nonce
  return place
end

-- The place of this owner, or nil if it has none any more. `isInOrder`: whether it is known to be in the order of the line.
local function placeOf(line, owner, now, isInOrder)
  local lapse = timeIn(line, owner)
  if not lapse or lapse <= now or not isOwner(owner) or not (isInOrder or redis.call('ZSCORE', line.places, owner)) then
    return nil
  end
  local place = readTerms(redis.call('HGET', line.terms, owner), lapse, now)
  if place then
    place.owner, place.lapse = owner, lapse
  end
  return place
end
