-- Whether this owner holds a lock that has a single owner. Its hash has one field and no `mode`.
local function holdsPlain(lock, owner)
  return hasField(lock, owner) and redis.call('HEXISTS', lock, 'mode') == 0
end
