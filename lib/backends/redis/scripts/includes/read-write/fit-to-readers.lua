-- Gives a lock without a writer the lease of the reader that has the longest one. False: nobody reads, and the lock is deleted, unless it has
-- fields of somebody else.
local function fitToReaders(lock)
  local longest = longestReader(lock)
  if not longest then
    if redis.call('HLEN', lock) <= 1 then
      redis.call('DEL', lock)
    end
    return false
  end
  if longest >= 0 then
    redis.call('PEXPIRE', lock, math.max(1, longest))
  end
  return true
end
