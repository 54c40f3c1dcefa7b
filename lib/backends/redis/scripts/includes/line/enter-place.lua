-- Keeps a place in the line, or makes one at its end, with the terms of a place that is told, or the number of those who
-- may hold the lock. Returns 1 if it is the first, or there is no memory for it (who has no place listens to releases as
-- who is first does), KEPT_FAR_BACK if it is kept that many times as long, and otherwise 0.
local function enterPlace(lock, owner, micros, waiterTimeout, kind, permits)
  local places, lapses, terms = lineOf(lock)
  local now = math.floor(micros / 1000)
  local fraction = (permits or 0) * PERMIT
  local position = redis.call('ZSCORE', places, owner)
  local isNew, isFirst = not position, false
  if isNew then
    isFirst = firstInLine(places, lapses, terms, now) == nil
    -- A clock that was set back must not put newcomers in front.
    local last = not isFirst and redis.call('ZRANGE', places, -1, -1, 'WITHSCORES')[2]
    position = string.format('%.0f', math.max(micros, last and last + 1 or 0))
  end
  local times = keepPlace(lock, places, lapses, terms, owner, position, now, waiterTimeout, fraction, kind)
  if not times or isFirst or (not isNew and firstInLine(places, lapses, terms, now) == owner) then
    return 1
  end
  return times > 1 and times or 0
end
