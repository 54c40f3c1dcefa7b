local function takeWriter(lock, owner, writers, lease)
  redis.call('ZREM', writers, owner)
  redis.call('HSET', lock, 'mode', 'write', owner .. ':write', '1')
  setWriteLease(lock, owner, lease)
end
