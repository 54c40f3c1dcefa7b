-- A place behind this many others is far back, and kept this many times as long: as in line-backend.ts.
local FAR_BACK, KEPT_FAR_BACK = 64, 4

-- How many times waiterTimeout a place at this position is kept.
local function timesKept(places, position)
  local edge = redis.call('ZRANGE', places, FAR_BACK, FAR_BACK, 'WITHSCORES')[2]
  return edge and tonumber(position) >= tonumber(edge) and KEPT_FAR_BACK or 1
end
