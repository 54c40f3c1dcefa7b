-- Makes or keeps a place in the line. `newTerms` are its terms from now on; nil: they stay as they are. They are written
-- first, because a place must not be served without them. Returns false if the server's memory is full.
local function keepPlace(lock, places, lapses, terms, owner, position, lapse, waiterTimeout, newTerms)
  local written = newTerms and redis.pcall('HSET', terms, owner, newTerms)
  if type(written) == 'table' then
    if string.find(written.err, 'OOM', 1, true) then
      return false
    end
    error(written.err, 0)
  end
  local isKept = addUnlessFull(places, position, owner) and addUnlessFull(lapses, lapse, owner)
  keepLine(lock, places, lapses, terms, waiterTimeout)
  return isKept
end
