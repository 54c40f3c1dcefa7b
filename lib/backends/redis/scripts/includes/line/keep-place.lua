-- Makes or keeps a place in the line. `kind` gives the terms of a place that is told; nil: they stay as they are. Returns
-- false if the server's memory is full. The terms are written first, because a place without them is granted the lock.
local function keepPlace(places, lapses, terms, owner, position, lapse, waiterTimeout, kind)
  if kind then
    local written = redis.pcall('HSET', terms, owner, kind)
    if type(written) == 'table' then
      if string.find(written.err, 'OOM', 1, true) then
        return false
      end
      error(written.err, 0)
    end
  end
  redis.call('PEXPIRE', terms, math.max(redis.call('PTTL', terms), waiterTimeout))
  return addUnlessFull(places, position, owner, waiterTimeout)
    and addUnlessFull(lapses, lapse, owner, waiterTimeout)
end
