-- Notifies the head of the queue that the lock is free. Returns how many clients listened, and the head, or nil if
-- nobody waits.
local function wakeHead(queue, lock, publish, now)
  local head = headOf(queue, now)
  if not head then
    return nil
  end
  return publishTo(publish, prefixed('redisson_lock__channel', lock) .. ':' .. head, '0'), head
end
