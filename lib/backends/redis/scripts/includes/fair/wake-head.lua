-- Notifies the head of the queue that the lock is free. Returns how many clients listened, and the head. If nobody is in
-- the queue, notifies waiters of other types, and returns nil.
local function wakeHead(queue, lock, publish, now)
  local head = headOf(queue, now)
  local channel = prefixed('redisson_lock__channel', lock)
  if not head then
    publishTo(publish, channel, '0')
    return nil
  end
  return publishTo(publish, channel .. ':' .. head, '0'), head
end
