-- Redisson's name of something that belongs to a lock. It is in the lock's hash slot: braces are added unless the name
-- has some.
local function prefixed(prefix, lock)
  if string.find(lock, '{', 1, true) then
    return prefix .. ':' .. lock
  end
  return prefix .. ':{' .. lock .. '}'
end
