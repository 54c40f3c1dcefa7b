-- Like `prefixed`, for keys that Redisson names with a suffix.
local function suffixed(lock, suffix)
  if string.find(lock, '{', 1, true) then
    return lock .. ':' .. suffix
  end
  return '{' .. lock .. '}:' .. suffix
end
