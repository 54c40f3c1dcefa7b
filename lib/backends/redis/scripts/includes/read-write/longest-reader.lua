-- Returns the remaining ms of the longest lease of a reader, and that reader, or nil if nobody reads. Removes readers
-- without a lease, which are dead.
local function longestReader(lock)
  local longest, reader
  local fields = redis.call('HGETALL', lock)
  for f = 1, #fields, 2 do
    local owner = fields[f]
    if isOwner(owner) then
      local left = longestHold(lock, owner, holdsIn(fields[f + 1]))
      if left == NO_KEY then
        redis.call('HDEL', lock, owner)
      elseif not longest or left > longest then
        longest, reader = left, owner
      end
    end
  end
  return longest, reader
end
