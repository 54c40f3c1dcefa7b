local function takeWriter(lock, owner, lease)
  if redis.pcall('ZREM', prefixed('nestjs_redis_lock_turns', lock), owner) == 1 then
    local _, lapses, terms = lineOf(lock)
    redis.call('ZREM', lapses, owner)
    redis.call('HDEL', terms, owner)
  end
  redis.call('HSET', lock, 'mode', 'write', owner .. ':write', '1')
  setWriteLease(lock, owner, lease)
end
