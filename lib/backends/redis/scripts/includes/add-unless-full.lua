-- Adds a waiting owner to a zset. If the server refuses that because its memory is full (it does not after another write
-- of the same script), the owner waits unregistered, because what it asks about the lock can be answered all the same.
-- Returns whether it was added.
local function addUnlessFull(zset, score, owner)
  local added = redis.pcall('ZADD', zset, score, owner)
  if type(added) ~= 'table' then
    return true
  end
  if string.find(added.err, 'OOM', 1, true) then
    return false
  end
  error(added.err, 0)
end
