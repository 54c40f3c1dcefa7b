-- The lock lasts as long as its writer may write, and at least as long as that writer may read.
local function setWriteLease(lock, owner, lease)
  expire(lock, math.max(lease, redis.call('PTTL', readLease(lock, owner, 1))))
end
