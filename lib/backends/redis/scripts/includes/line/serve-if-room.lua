-- Serves the line if there is room for its first place, or for a permit of one behind it, because whoever was served
-- before may have died. `first` and `lapse` are what firstInLine has returned.
local function serveIfRoom(lock, publish, first, lapse, now)
  local places, lapses, terms = lineOf(lock)
  if first and lapse % 1 > 0 then
    grantPermits(lock, places, lapses, terms, now, tellerOf(lock, publish))
  elseif first and hasRoom(lock, lapse, now, redis.call('HGET', terms, first)) then
    serveLine(lock, publish)
  end
end
