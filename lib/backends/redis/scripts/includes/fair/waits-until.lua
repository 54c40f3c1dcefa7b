-- The time (ms) at which an owner is dropped from the queue of a fair lock, or 0 if it is not in the queue.
local function waitsUntil(queue, owner)
  local time = redis.call('ZSCORE', queue.heartbeats, owner) or redis.call('ZSCORE', queue.timeouts, owner)
  return tonumber(time or 0)
end
