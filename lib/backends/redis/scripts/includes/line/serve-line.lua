-- How many readers are told at once.
local MOST_READERS = 128

-- Tells the first place, of a reader or writer, that it may ask. If it is a reader, so may the readers right behind it. A
-- place that may now acquire the lock, and does not, lapses. Returns { ms until the first one lapses, its owner }.
local function tellPlaces(lock, places, lapses, terms, kind, now, tell)
  local first, lapse = firstInLine(places, lapses, terms, now)
  local canAsk = hasRoom(lock, lapse, now, kind)
  for _, place in ipairs(redis.call('ZRANGE', places, 0, kind == READS and MOST_READERS - 1 or 0)) do
    if place ~= first and redis.call('HGET', terms, place) ~= kind then
      break
    end
    if canAsk then
      redis.call('ZADD', lapses, 'XX', 'LT', now + CLAIM, place)
    end
    tell(place, place)
  end
  return { canAsk and math.min(CLAIM, lapse - now) or lapse - now, first }
end

-- Grants a free lock to the first place of its line, and tells its client. A lock that is held is not granted: the client
-- is only told, and asks what has changed. If clients listen that stand in no line, the lock is left free for them at first.
-- The place is told, and a negative position marks it. The next time, it is granted the lock. Readers and writers are
-- always only told: then it returns the answer to others who ask.
-- The message is the owner id of the place, then ` granted`, or ` free` if the lock is left free, or nothing.
local function serveLine(lock, publish, othersListen)
  local places, lapses, terms = lineOf(lock)
  local now = serverTime()
  local first, lapse = firstInLine(places, lapses, terms, now)
  if not first then
    return
  end
  local function tell(owner, message)
    local client = string.match(owner, '^(.*):') or owner
    publishTo(publish, prefixed('nestjs_redis_lock_turn', lock) .. ':' .. client, message)
  end
  if lapse % 1 > 0 then
    return grantPermits(lock, places, lapses, terms, now, tell)
  end
  local kind = redis.call('HGET', terms, first)
  if kind and string.sub(kind, 1, 2) == 't ' then
    return tellPlaces(lock, places, lapses, terms, kind, now, tell)
  end
  local message = first
  if redis.call('EXISTS', lock) == 0 then
    local position = tonumber(redis.call('ZSCORE', places, first))
    if othersListen and position > 0 then
      redis.call('ZADD', places, string.format('%.0f', -position), first)
      message = first .. ' free'
    else
      redis.call('HSET', lock, first, '1')
      redis.call('PEXPIRE', lock, CLAIM)
      leaveLine(places, lapses, terms, first)
      message = first .. ' granted'
    end
  end
  tell(first, message)
end
