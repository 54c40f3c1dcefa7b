-- For how many ms a release leaves the lock to clients that stand in no line: HEAD_START in line-backend.ts.
local HEAD_START = 10
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

-- Returns `tell(owner, message)`, which tells the client of a place.
local function tellerOf(lock, publish)
  return function(owner, message)
    local client = string.match(owner, '^(.*):') or owner
    publishTo(publish, prefixed('nestjs_redis_lock_turn', lock) .. ':' .. client, message)
  end
end

-- Grants a free lock to the first place of its line, and tells its client. A lock that is held is not granted: the client
-- is only told, and asks what has changed. If clients listen that stand in no line, every second release leaves the lock
-- to them: it is granted to nobody until their head start is over. If it is uncertain whether any listen, they get none.
-- Readers and writers are always only told: then it returns the answer to others who ask.
-- The message is the owner id of the place, then ` granted` and what tokenOfGrant says, or ` free` during a head start, or
-- nothing.
--
-- `listeners`: after a release, how many clients listen outside the line; otherwise nil
-- `uncounted`: others may listen that this server does not count
local function serveLine(lock, publish, listeners, uncounted)
  local places, lapses, terms = lineOf(lock)
  local now = serverTime()
  local first, lapse = firstInLine(places, lapses, terms, now)
  if not first then
    return
  end
  local tell = tellerOf(lock, publish)
  if lapse % 1 > 0 then
    if not grantPermits(lock, places, lapses, terms, now, tell) then
      tell(first, first)
    end
    return
  end
  local kind = redis.call('HGET', terms, first)
  if kind and string.sub(kind, 1, 2) == 't ' then
    return tellPlaces(lock, places, lapses, terms, kind, now, tell)
  end
  local message = first
  if redis.call('EXISTS', lock) == 0 then
    local headStart = headStartOf(lapses)
    local othersListen = listeners and listeners > 0
    if not headStart and (othersListen or uncounted) then
      redis.call('ZADD', lapses, othersListen and now + HEAD_START or 0, HEAD_START_UNTIL)
      message = othersListen and first .. ' free' or first
    elseif headStart and headStart > now and not listeners then
      message = first .. ' free'
    else
      redis.call('HSET', lock, first, '1')
      redis.call('PEXPIRE', lock, CLAIM)
      if headStart then
        redis.call('ZREM', lapses, HEAD_START_UNTIL)
      end
      message = first .. ' granted' .. tokenOfGrant(lock, kind)
      leaveLine(places, lapses, terms, first)
    end
  end
  tell(first, message)
end
