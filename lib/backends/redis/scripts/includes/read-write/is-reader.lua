local function isReader(lock, owner)
  return redis.call('HEXISTS', lock, 'mode') == 1
    and redis.call('HEXISTS', lock, owner) == 1
    and redis.call('EXISTS', readLease(lock, owner, 1)) == 1
end
