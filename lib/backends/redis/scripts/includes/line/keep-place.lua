-- Makes or keeps a place in the line. `newTerms` are its terms from now on; nil: they stay as they are. They are written
-- first, because a place must not be served without them. Returns false if it is a new place and the server's memory is
-- full: then the owner waits without a place, because what it asks about the lock can be answered all the same. Otherwise
-- returns how many times waiterTimeout it is kept. `fraction` is added to the time at which it lapses.
local function keepPlace(lock, places, lapses, terms, owner, position, now, waiterTimeout, fraction, newTerms)
  local isKept = (not newTerms or writeUnlessFull('HSET', terms, owner, newTerms))
    and writeUnlessFull('ZADD', places, position, owner)
  if not isKept and redis.call('ZSCORE', places, owner) then
    openFullMemory(places)
    isKept = not newTerms or writeUnlessFull('HSET', terms, owner, newTerms)
  end
  local times = timesKept(places, position)
  isKept = isKept and writeUnlessFull('ZADD', lapses, now + waiterTimeout * times + fraction, owner)
  keepLine(lock, places, lapses, terms, waiterTimeout * times)
  return isKept and times
end
