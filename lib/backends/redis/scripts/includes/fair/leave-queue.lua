-- Returns how many of the three keys of the queue contained this owner.
local function leaveQueue(queue, owner)
  return redis.call('LREM', queue.list, 1, owner)
    + redis.call('ZREM', queue.timeouts, owner)
    + redis.call('ZREM', queue.heartbeats, owner)
end
