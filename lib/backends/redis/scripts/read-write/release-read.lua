--[[
  Releases the read side. The last reader wakes a writer, and so does a reader that leaves the lock with a shorter lease.
  If others still hold the lock, the answer is NOT_PUBLISHED as well.
]]
-- @template release-read-write
if not isReader(lock, owner) then
  return { NOT_HELD, serverTime() }
end
local left = redis.call('PTTL', KEYS[2 * i])
redis.call('DEL', KEYS[2 * i])
redis.call('HDEL', lock, owner)
if redis.call('HGET', lock, 'mode') == 'write' then
  return NOT_PUBLISHED
end
local former = redis.call('HLEN', lock) > 1 and redis.call('PTTL', lock)
-- Another reader is alive and has the longest lease.
if former and left < former - 1 then
  return NOT_PUBLISHED
end
local channel = prefixed('redisson_rwlock', lock)
if fitToReaders(lock) then
  if becomesShorter(former, redis.call('PTTL', lock)) then
    publishTo(publish, channel, '0')
    changed[#changed + 1], lines[#lines + 1] = i, prefixed('nestjs_redis_lock_turns', lock)
  end
  return NOT_PUBLISHED
end
changed[#changed + 1], lines[#lines + 1] = i, prefixed('nestjs_redis_lock_turns', lock)
return publishTo(publish, channel, '0') or NOT_PUBLISHED
