-- Grants a lock to the first place of its line that lives, or tells it if it asks itself, or for a lock that is held: see
-- tell-line.lua. Of permits, it grants as many as are left: whom a newcomer may pass, those in line may pass.
--
-- `listeners`: as in leaveToOthers
-- `asker`: an owner that asks for the lock, and for which it has room
--
-- Returns nil if it is the asker's turn, or else { ms until the turn of others may be over, who they are }.
local function serveLine(lock, publish, clock, listeners, asker)
  local line, time = lineOf(lock), redis.call('TIME')
  line.micros = time[1] * 1000000 + time[2]
  local now = math.floor(line.micros / 1000)
  local isFree = redis.call('EXISTS', lock) == 0
  while true do
    local place, first = nextPlace(line, publish, clock, now, roomIn(lock, isFree, now))
    if not first or (asker and place and place.owner == asker) then
      return nil
    end
    local leftUntil = isFree and leaveToOthers(line, publish, clock, now, listeners)
    if not place and not (isFree and (leftUntil or not asker)) then
      return nil
    elseif not place or not place.lease or leftUntil or not grantTo(line, publish, clock, place, now) then
      local told = asker and place and not leftUntil and timeIn(line, TOLD_UNTIL)
      if told and told <= now and redis.call('ZSCORE', line.places, asker) then
        return nil
      end
      return tellFirst(line, publish, now, first, isFree or place ~= nil, leftUntil, listeners, asker)
    elseif not place.permits then
      return { place.lease, place.owner }
    end
    isFree = false
  end
end
