-- The head of the queue, and the time at which it loses its place; nil when nobody waits. Dead waiters before it are
-- removed.
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
