-- Keeps a place in the line, or makes one at its end: see keepPlace. Returns 1 if it is the first, or there is no memory
-- for it (who has no place listens to releases as who is first does), KEPT_FAR_BACK if it is kept that many times as long,
-- and otherwise 0.
local function enterPlace(line, owner, micros, waiterTimeout, describe, permits)
  local now = math.floor(micros / 1000)
  local position = redis.call('ZSCORE', line.places, owner)
  if not position then
    -- A clock that was set back must not put newcomers in front.
    local last = redis.call('ZRANGE', line.places, -1, -1, 'WITHSCORES')[2]
    position = string.format('%.0f', math.max(micros, last and last + 1 or 0))
  end
  local times = keepPlace(line, owner, position, now, waiterTimeout, describe, permits)
  if not times or firstInLine(line, now).owner == owner then
    return 1
  end
  return times > 1 and times or 0
end
