-- Whether a lock's hash has this field. A lock that n may hold is a zset, and has none.
local function hasField(lock, field)
  local has = redis.pcall('HEXISTS', lock, field)
  if type(has) == 'table' and redis.call('TYPE', lock).ok ~= 'zset' then
    error(has.err, 0)
  end
  return has == 1
end
