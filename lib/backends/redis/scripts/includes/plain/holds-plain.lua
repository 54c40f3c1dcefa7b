-- Whether this owner holds a lock that has one owner: a hash of one field, without `mode`.
local function holdsPlain(lock, owner)
  return redis.call('HEXISTS', lock, owner) == 1 and redis.call('HEXISTS', lock, 'mode') == 0
end
