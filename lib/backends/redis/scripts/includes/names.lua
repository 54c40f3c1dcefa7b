-- Redisson's names of what belongs to a lock: in its hash slot, by braces that are added unless the name has some.
local function prefixed(prefix, lock)
  if string.find(lock, '{', 1, true) then
    return prefix .. ':' .. lock
  end
  return prefix .. ':{' .. lock .. '}'
end

local function suffixed(lock, suffix)
  if string.find(lock, '{', 1, true) then
    return lock .. ':' .. suffix
  end
  return '{' .. lock .. '}:' .. suffix
end
