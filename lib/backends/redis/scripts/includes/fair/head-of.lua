-- The head of the queue, and the time at which it is dropped from the queue. nil: nobody waits. Removes dead waiters
-- before it.
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
