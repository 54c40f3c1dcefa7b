-- Makes or keeps a place in the line. `describe(keep)` returns its terms if it is kept for that many ms. Returns false if
-- it is a new place and the server's memory is full: then the owner waits without a place, because what it asks about the
-- lock can be answered all the same. Otherwise returns how many times waiterTimeout it is kept.
local function keepPlace(line, owner, position, now, waiterTimeout, describe, permits)
  local isKept = writeUnlessFull('ZADD', line.places, position, owner)
  if not isKept and redis.call('ZSCORE', line.places, owner) then
    openFullMemory(line.places)
    isKept = true
  end
  local times = timesKept(line.places, position)
  local keep = waiterTimeout * times
  isKept = isKept and writeUnlessFull('HSET', line.terms, owner, describe(keep))
    and writeUnlessFull('ZADD', line.lapses, now + keep + (permits or 0) * PERMIT, owner)
  keepLine(line, keep)
  return isKept and times
end
