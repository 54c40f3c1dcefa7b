-- ZADD comes first, so that a server whose memory is full refuses a new holder.
local function takePermit(lock, owner, lease, now)
  redis.call('ZADD', lock, now + lease, owner)
  fitToPermits(lock, now)
end
