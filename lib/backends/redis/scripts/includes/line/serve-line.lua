-- Grants a free lock to the first place of its line, and tells its client. A lock that is held is not granted: the client
-- is only told, and asks what has changed. If clients listen that stand in no line, the lock is left free for them at first.
-- The place is told, and a negative position marks it. The next time, it is granted the lock.
-- The message is the owner id of the place, then ` granted`, or ` free` if the lock is left free, or nothing.
local function serveLine(lock, publish, othersListen)
  local places, lapses = lineOf(lock)
  local now = serverTime()
  local first, lapse = firstInLine(places, lapses, now)
  if not first then
    return
  end
  local function tell(owner, message)
    local client = string.match(owner, '^(.*):') or owner
    publishTo(publish, prefixed('nestjs_redis_lock_turn', lock) .. ':' .. client, message)
  end
  if lapse % 1 > 0 then
    return grantPermits(lock, places, lapses, now, tell)
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
      leaveLine(places, lapses, first)
      message = first .. ' granted'
    end
  end
  tell(first, message)
end
