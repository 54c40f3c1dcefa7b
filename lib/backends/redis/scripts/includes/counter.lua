-- A whole number that Redis keeps as a string; nothing counts as 0. Where something else stands, INCRBY complains.
local function counterOf(key)
  local value = redis.call('GET', key)
  if not value then
    return 0
  end
  return tonumber(string.match(value, '^-?%d+$') or redis.call('INCRBY', key, 0))
end
