-- A whole number that Redis keeps as a string; 0 when there is none. If something else is stored there, INCRBY fails
-- with an error.
local function countOf(key)
  local value = redis.call('GET', key)
  if not value then
    return 0
  end
  return tonumber(string.match(value, '^-?%d+$') or redis.call('INCRBY', key, 0))
end
