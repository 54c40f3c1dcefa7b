-- Removes dead waiters from the front of the queue. Returns the head, and the time at which it is dropped from the
-- queue, or nil if nobody waits.
local function headOf(queue, now)
  while true do
    local head = redis.call('LINDEX', queue.list, 0)
    if not head then
      return nil
    end
    local time = waitsUntil(queue, head)
    if time > now then
      return head, time
    end
    leaveQueue(queue, head)
  end
end
