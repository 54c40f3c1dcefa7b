-- Appends an owner to the queue, or lets it stay longer if it is already there.
local function enterQueue(queue, owner, now, waiterTimeout)
  local timeout = redis.call('ZSCORE', queue.timeouts, owner)
  local alive = now + waiterTimeout
  if timeout and waitsUntil(queue, owner) > now then
    setTimeout(queue, owner, math.max(tonumber(timeout), alive), alive, waiterTimeout)
    return
  end
  leaveQueue(queue, owner)
  local javaWaiters = math.max(0, redis.call('LLEN', queue.list) - redis.call('ZCARD', queue.heartbeats))
  timeout = alive + JAVA_WAIT * javaWaiters
  local last = redis.call('LINDEX', queue.list, -1)
  if last and not redis.call('ZSCORE', queue.heartbeats, last) then
    timeout = math.max(timeout, waitsUntil(queue, last) + waiterTimeout)
  end
  redis.call('RPUSH', queue.list, owner)
  setTimeout(queue, owner, timeout, alive, waiterTimeout)
end
