-- The name of a key or channel beside a lock, as Redisson builds it. Braces around the lock's key put it into the same
-- hash slot. A key that already has braces gets no more.
local function prefixed(prefix, lock)
  if string.find(lock, '{', 1, true) then
    return prefix .. ':' .. lock
  end
  return prefix .. ':{' .. lock .. '}'
end
