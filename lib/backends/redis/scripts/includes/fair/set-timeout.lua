-- Java uses `timeout`, this library uses `alive`.
local function setTimeout(queue, owner, timeout, alive, waiterTimeout)
  writeAlthoughFull(queue.timeouts, 'ZADD', queue.timeouts, timeout, owner)
  redis.call('ZADD', queue.heartbeats, alive, owner)
  keepKey(queue.heartbeats, waiterTimeout)
end
