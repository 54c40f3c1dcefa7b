local function takeReader(lock, owner, lease)
  local before = writeReadLease(lock, owner, lease)
  redis.call('HSETNX', lock, 'mode', 'read')
  redis.call('HSET', lock, owner, '1')
  fitToLease(lock, lease, before)
end
