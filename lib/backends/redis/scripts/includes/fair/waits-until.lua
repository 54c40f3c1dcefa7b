-- The time (ms) at which an owner loses its place in the queue of a fair lock; 0 when it has none.
local function waitsUntil(queue, owner)
  local time = redis.call('ZSCORE', queue.heartbeats, owner) or redis.call('ZSCORE', queue.timeouts, owner)
  return tonumber(time or 0)
end
