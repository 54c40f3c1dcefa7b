local function takeReader(lock, owner, lease)
  redis.call('HSETNX', lock, 'mode', 'read')
  redis.call('HSET', lock, owner, '1')
  writeReadLease(lock, owner, lease)
end
