-- Whether somebody among the fields of a lock holds it whose release does not serve its line: SERVES_LINES in owner-ids.ts
-- tells.
local function isHeldByOthers(fields)
  for _, field in ipairs(fields) do
    if field ~= 'mode' and string.sub(field, 15, 18) ~= '811e' then
      return true
    end
  end
  return false
end
