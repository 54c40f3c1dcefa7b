-- Serves the line if there is room for its first place, or for a permit of one behind it, because whoever was served
-- before may have died.
local function serveIfRoom(lock, publish)
  local places, lapses, terms = lineOf(lock)
  local now = serverTime()
  local first, lapse = firstInLine(places, lapses, terms, now)
  if first and lapse % 1 > 0 then
    grantPermits(lock, places, lapses, terms, now, tellerOf(lock, publish))
  elseif first and hasRoom(lock, lapse, now, redis.call('HGET', terms, first)) then
    serveLine(lock, publish)
  end
end
