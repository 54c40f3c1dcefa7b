-- Keeps a place in the line, or makes one at its end, with the terms of a place that is told, or the number of those who
-- may hold the lock. Returns whether it is the first, or there is no memory for it: who has no place listens to releases
-- as who is first does.
local function enterPlace(lock, owner, micros, waiterTimeout, kind, permits)
  local places, lapses, terms = lineOf(lock)
  local now = math.floor(micros / 1000)
  local lapse = now + waiterTimeout + (permits or 0) * PERMIT
  local position = redis.call('ZSCORE', places, owner)
  if position then
    return not keepPlace(lock, places, lapses, terms, owner, position, lapse, waiterTimeout, kind)
      or firstInLine(places, lapses, terms, now) == owner
  end
  local isFirst = firstInLine(places, lapses, terms, now) == nil
  -- A clock that was set back must not put newcomers in front.
  local last = not isFirst and redis.call('ZRANGE', places, -1, -1, 'WITHSCORES')[2]
  position = string.format('%.0f', math.max(micros, last and last + 1 or 0))
  return not keepPlace(lock, places, lapses, terms, owner, position, lapse, waiterTimeout, kind) or isFirst
end
