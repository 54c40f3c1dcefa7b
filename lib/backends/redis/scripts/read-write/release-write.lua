--[[
  Releases the write side, and wakes all waiters. A writer that also reads keeps the read side.
]]
-- @template release-read-write
if not isWriter(lock, owner) then
  return { NOT_HELD, serverTime() }
end
redis.call('HDEL', lock, owner .. ':write')
endWriting(lock)
changed[#changed + 1], lines[#lines + 1] = i, prefixed('nestjs_redis_lock_turns', lock)
return publishTo(publish, prefixed('redisson_rwlock', lock), '1') or NOT_PUBLISHED
