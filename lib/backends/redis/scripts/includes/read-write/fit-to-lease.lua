-- Makes the lock last as long as the reader's lease that was just written, which had `before` ms left until then.
local function fitToLease(lock, lease, before)
  local ttl = redis.call('PTTL', lock)
  if ttl < lease then
    expire(lock, lease)
  elseif before >= ttl - 1 and redis.call('HGET', lock, 'mode') == 'read' then
    fitToReaders(lock) -- this lease was the longest one, and became shorter
  end
end
