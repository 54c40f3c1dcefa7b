local function leaveLine(places, lapses, terms, owner)
  redis.call('ZREM', lapses, owner)
  redis.call('HDEL', terms, owner)
  return redis.call('ZREM', places, owner)
end

-- The first place of a line and when it lapses, or nil. Removes places in front that have lapsed.
local function firstInLine(places, lapses, terms, now)
  while true do
    local first = redis.call('ZRANGE', places, 0, 0)[1]
    if not first then
      return nil
    end
    local lapse = redis.call('ZSCORE', lapses, first)
    if lapse and tonumber(lapse) > now then
      return first, tonumber(lapse)
    end
    leaveLine(places, lapses, terms, first)
  end
end
