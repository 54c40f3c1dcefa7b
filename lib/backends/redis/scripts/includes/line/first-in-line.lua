-- This member of the zset of lapses is no place. It says until when a free lock is left to clients that stand in no line.
-- It exists from a release that left the lock free until the line is granted the lock.
local HEAD_START_UNTIL = 'outside'

local function headStartOf(lapses)
  return tonumber(redis.call('ZSCORE', lapses, HEAD_START_UNTIL))
end

-- Why nobody in line can have a free lock: { ms left of the head start of others }, or nil.
local function whyHeadStartWaits(lock, lapses, now)
  local headStart = redis.call('EXISTS', lock) == 0 and headStartOf(lapses)
  return headStart and headStart > now and { headStart - now } or nil
end

local function leaveLine(places, lapses, terms, owner)
  redis.call('ZREM', lapses, owner)
  redis.call('HDEL', terms, owner)
  local left = redis.call('ZREM', places, owner)
  if redis.call('EXISTS', places) == 0 then
    redis.call('DEL', lapses)
  end
  return left
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
