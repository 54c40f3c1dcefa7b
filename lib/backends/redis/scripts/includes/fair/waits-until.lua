-- The time (ms) at which an owner is dropped from the queue of a fair lock. 0: it is not in the queue.
local function waitsUntil(queue, owner)
  local time = redis.call('ZSCORE', queue.heartbeats, owner) or redis.call('ZSCORE', queue.timeouts, owner)
  return tonumber(time or 0)
end
