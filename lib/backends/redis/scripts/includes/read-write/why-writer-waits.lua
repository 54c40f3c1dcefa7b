-- Why `owner` cannot write: { ttl, holder }, or nil if it can.
local function whyWriterWaits(lock, owner)
  local ttl = redis.call('PTTL', lock)
  if ttl == NO_KEY or isWriter(lock, owner) then
    return nil
  end
  if redis.call('HGET', lock, 'mode') ~= 'read' then
    return { ttl, holderOf(lock) }
  end
  lockFields(lock)
  local left, reader = longestReader(lock)
  if left then
    return { left, reader }
  end
  redis.call('DEL', lock)
  return nil
end
