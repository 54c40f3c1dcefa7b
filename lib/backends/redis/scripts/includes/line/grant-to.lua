-- What the message about a grant says: the nonce, the token, how many more are reserved, how many ms after its request the
-- place is granted the lock, and the lease; '' without a nonce, or if the user may not write the clock: then the process
-- asks. The clocks of two servers tell nothing about the time between.
local function detailsOf(line, clock, place)
  if place.nonce == NO_NONCE then
    return ''
  end
  local seenByCaller = seen
  micros, seen = line.micros, place.highest
  local isTaken = pcall(function()
    if place.kind == 'f' then
      reserveFencedTokens(prefixed('redisson_lock_token', line.lock), clock, place.reserve)
    else
      reserveTokens(clock, place.reserve, 1)
    end
  end)
  seen = seenByCaller
  if not isTaken then
    return ''
  end
  local after = place.server == thisServer() and math.max(0, math.floor((micros - place.since) / 1000)) or 0
  return string.format(' %s %.0f %d %d %d', place.nonce, nextToken(), reserved, after, place.lease)
end

-- Makes this place the owner of a lock that has room for it, with the lease that it has asked for, and tells its client.
-- The lock is written first, so that no message is out without its lock, and given back if the message is refused. Returns
-- false if it is.
local function grantTo(line, publish, clock, place, now)
  local lock, owner = line.lock, place.owner
  local details = detailsOf(line, clock, place)
  if place.permits then
    redis.call('ZADD', lock, now + place.lease, owner)
    expire(lock, math.max(place.lease, redis.call('PTTL', lock)))
  else
    redis.call('HSET', lock, owner, '1')
    expire(lock, place.lease)
  end
  if not publishInLine(line, publish, owner, owner .. ' granted' .. details) then
    if place.permits then
      redis.call('ZREM', lock, owner)
      fitToPermits(lock, now)
    else
      redis.call('HDEL', lock, owner)
    end
    return false
  end
  leaveLine(line, owner, HEAD_START_UNTIL, TOLD_UNTIL)
  return true
end
