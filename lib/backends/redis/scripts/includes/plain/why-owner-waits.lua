-- Why `owner` cannot have a lock that has a single owner: { ttl, holder }, or nil if it can. A third element is 'write'
-- if it is held as a read/write lock, whose release goes to another channel. `ttl` is the lock's PTTL, if it is already
-- known.
local function whyOwnerWaits(lock, owner, ttl)
  ttl = ttl or redis.call('PTTL', lock)
  if ttl == NO_KEY then
    return nil
  end
  local fields, permit = lockFields(lock)
  if permit then
    return permit
  end
  if #fields == 1 and fields[1] == owner then
    return nil
  end
  return { ttl, holderAmong(fields), #fields > 1 and 'write' or nil }
end
