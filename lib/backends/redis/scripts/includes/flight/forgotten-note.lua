-- The first and the last reading of a note that results were forgotten; nil: there is none. Anything else than this library
-- writes counts as none.
local function forgottenNote(key)
  local note = redis.pcall('GET', key)
  local first, last = string.match(type(note) == 'string' and note or '', '^(%d+),(%d+)$')
  return tonumber(first), tonumber(last)
end
