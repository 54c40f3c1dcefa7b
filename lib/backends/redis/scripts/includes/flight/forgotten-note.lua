-- The first and the last reading in a record of forgotten results. Returns nil if there is no record. Values that this
-- library does not write count as no record.
local function forgottenNote(key)
  local note = redis.pcall('GET', key)
  local first, last = string.match(type(note) == 'string' and note or '', '^(%d+),(%d+)$')
  return tonumber(first), tonumber(last)
end
