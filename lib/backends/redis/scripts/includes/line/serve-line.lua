-- Grants a free lock to the first place of its line, and tells its client. A lock that is held is not granted: the client
-- is only told, and asks what has changed. If clients listen that stand in no line, the lock is left free for them at first.
-- The place is told, and a negative position marks it. The next time, it is granted the lock.
-- The message is the owner id of the place, then ` granted` and what tokenOfGrant says, or ` free` if the lock is left
-- free, or nothing.
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
  local message = first
  if redis.call('EXISTS', lock) == 0 then
    local position = tonumber(redis.call('ZSCORE', places, first))
    if othersListen and position > 0 then
      redis.call('ZADD', places, string.format('%.0f', -position), first)
      message = first .. ' free'
    else
      redis.call('HSET', lock, first, '1')
      redis.call('PEXPIRE', lock, CLAIM)
      message = first .. ' granted' .. tokenOfGrant(lock, redis.call('HGET', terms, first))
      leaveLine(places, lapses, terms, first)
    end
  end
  tell(first, message)
end
