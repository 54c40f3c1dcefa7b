local function isReader(lock, owner)
  return hasField(lock, 'mode')
    and redis.call('HEXISTS', lock, owner) == 1
    and redis.call('EXISTS', readLease(lock, owner, 1)) == 1
end
