-- The first place is looked at alone, the others this many at a time, and this many in a call.
local AT_ONCE, MOST_PLACES = 64, 1024
local lookedAt = 0

-- It has more than a third of its time left, unless its process is late.
local function owesRefresh(place, now)
  return place.keep and 3 * (place.lapse - now) <= place.keep
end

-- Whether it can be granted the lock, or told that it is free: its process listens and, for a grant, owes no refresh. A
-- full lease for the dead would block the lock for as long. One that fails stays in line, and has time to be refreshed.
local function mayBeNext(line, place, listeners, now)
  if not place.lease then
    return listeners ~= 0
  elseif listeners and listeners > 0 and not owesRefresh(place, now) then
    return true
  end
  local interval = math.floor(place.keep / 3)
  if listeners ~= 0 and place.lapse < now + interval then
    redis.call('ZADD', line.lapses, 'XX', now + interval + place.lapse % 1, place.owner)
  end
  return false
end

-- The first place that may be next and `fits`, if any, and whom to tell otherwise: the first one that owes no refresh, or
-- else the first one; nil if the line is empty. `fits(place)`: nil if nobody behind it fits either. After a grant, a
-- further call continues behind that place, because nobody in front of it fits any more.
local function nextPlace(line, publish, clock, now, fits)
  local from, count = line.from or 0, 1
  local first, ready
  while lookedAt < MOST_PLACES do
    local owners = redis.call('ZRANGE', line.places, from, from + count - 1)
    if not owners[1] then
      break
    end
    local listeners = listenersInLine(line, publish, clock, owners)
    for i, owner in ipairs(owners) do
      lookedAt = lookedAt + 1
      local place = placeOf(line, owner, now, true)
      if place then
        from = from + 1
        local doesFit = fits(place)
        first, ready = first or place, ready or not owesRefresh(place, now) and place or nil
        if doesFit == nil then
          return nil, ready or first
        elseif doesFit and mayBeNext(line, place, listeners and listeners[2 * i], now) then
          line.from = from - 1
          return place, place
        end
      else
        leaveLine(line, owner)
      end
    end
    count = AT_ONCE
  end
  return nil, ready or first or firstInLine(line, now)
end
