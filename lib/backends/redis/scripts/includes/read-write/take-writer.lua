local function takeWriter(lock, owner, lease)
  if redis.pcall('ZREM', prefixed('nestjs_redis_lock_turns', lock), owner) == 1 then
    local line = lineOf(lock)
    redis.call('ZREM', line.lapses, owner, TOLD_UNTIL)
    redis.call('HDEL', line.terms, owner)
  end
  local former = isWriter(lock, owner) and redis.call('PTTL', lock) or 0
  redis.call('HSET', lock, 'mode', 'write', owner .. ':write', '1')
  setWriteLease(lock, owner, math.max(lease, former))
end
