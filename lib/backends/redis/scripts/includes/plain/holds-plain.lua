-- Whether this owner holds a lock that has a single owner. Its hash has one field and no `mode`.
local function holdsPlain(lock, owner)
  return redis.call('HEXISTS', lock, owner) == 1 and redis.call('HEXISTS', lock, 'mode') == 0
end
