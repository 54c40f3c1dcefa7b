-- Serves the line if there is room for its first place, because whoever was served before may have died.
local function serveIfRoom(lock, publish)
  local places, lapses, terms = lineOf(lock)
  local now = serverTime()
  local first, lapse = firstInLine(places, lapses, terms, now)
  if first and hasRoom(lock, lapse, now, redis.call('HGET', terms, first)) then
    serveLine(lock, publish)
  end
end
