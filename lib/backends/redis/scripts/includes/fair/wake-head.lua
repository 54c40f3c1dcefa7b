-- Notifies the head of the queue that the lock is free or, if nobody is in the queue, waiters of other types, and tells
-- their line. Returns how many clients listened, and the head, if any.
local function wakeHead(queue, lock, publish, now)
  local head = headOf(queue, now)
  local channel = prefixed('redisson_lock__channel', lock)
  if not head then
    local listeners = publishTo(publish, channel, '0')
    if publish ~= '' then
      pcall(tellLine, lock, publish, nil, listeners or 0)
    end
    return listeners
  end
  return publishTo(publish, channel .. ':' .. head, '0'), head
end
