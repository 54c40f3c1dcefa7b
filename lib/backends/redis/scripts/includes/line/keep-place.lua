-- Makes or keeps a place in the line. `newTerms` are its terms from now on; nil: they stay as they are. They are written
-- first, because a place must not be served without them. Returns false if it is a new place and the server's memory is
-- full: then the owner waits without a place, because what it asks about the lock can be answered all the same.
local function keepPlace(lock, places, lapses, terms, owner, position, lapse, waiterTimeout, newTerms)
  local isKept = (not newTerms or writeUnlessFull('HSET', terms, owner, newTerms))
    and writeUnlessFull('ZADD', places, position, owner)
  if not isKept and redis.call('ZSCORE', places, owner) then
    openFullMemory(places)
    isKept = not newTerms or writeUnlessFull('HSET', terms, owner, newTerms)
  end
  isKept = isKept and writeUnlessFull('ZADD', lapses, lapse, owner)
  keepLine(lock, places, lapses, terms, waiterTimeout)
  return isKept
end
