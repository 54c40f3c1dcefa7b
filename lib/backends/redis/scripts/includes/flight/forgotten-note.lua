-- The first and the last reading in a note of forgotten results. nil: there is no note. Values that this library does not
-- write count as no note.
local function forgottenNote(key)
  local note = redis.pcall('GET', key)
  local first, last = string.match(type(note) == 'string' and note or '', '^(%d+),(%d+)$')
  return tonumber(first), tonumber(last)
end
