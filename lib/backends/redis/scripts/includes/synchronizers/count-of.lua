-- Reads a whole number that Redis stores as a string, or 0 if the key does not exist. If the key contains something
-- else, INCRBY fails with an error.
local function countOf(key)
  local value = redis.call('GET', key)
  if not value then
    return 0
  end
  return tonumber(string.match(value, '^-?%d+$') or redis.call('INCRBY', key, 0))
end
