-- One of the owners that hold a lock of any type, according to the fields of its hash.
local function holderAmong(fields)
  for _, field in ipairs(fields) do
    if field ~= 'mode' then
      return (string.gsub(field, ':write$', ''))
    end
  end
  return ''
end

local function holderOf(lock)
  local fields, permit = lockFields(lock)
  return permit and permit[2] or holderAmong(fields)
end
