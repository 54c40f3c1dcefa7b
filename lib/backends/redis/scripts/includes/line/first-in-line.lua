-- The first place of a line, or nil. Removes what is no place any more.
local function firstInLine(line, now)
  while true do
    local owner = redis.call('ZRANGE', line.places, 0, 0)[1]
    local place = owner and placeOf(line, owner, now, true)
    if place or not owner then
      return place
    end
    leaveLine(line, owner)
  end
end
