-- Whether somebody among the fields of a lock holds it whose release does not serve its line: see owner-ids.ts.
local function isHeldByOthers(fields)
  for _, field in ipairs(fields) do
    if field ~= 'mode' and (string.sub(field, 15, 18) ~= '811e' or string.find(field, ':0', 37, true) == 37) then
      return true
    end
  end
  return false
end
