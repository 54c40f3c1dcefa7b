local function takeReader(lock, owner, lease)
  redis.call('HSETNX', lock, 'mode', 'read')
  redis.call('HSET', lock, owner, '1')
  writeReadLease(lock, owner, math.max(lease, redis.call('PTTL', readLease(lock, owner, 1))))
end
