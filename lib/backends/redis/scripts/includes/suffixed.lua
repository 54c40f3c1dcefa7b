-- As `prefixed`, for what Redisson names by a suffix.
local function suffixed(lock, suffix)
  if string.find(lock, '{', 1, true) then
    return lock .. ':' .. suffix
  end
  return '{' .. lock .. '}:' .. suffix
end
