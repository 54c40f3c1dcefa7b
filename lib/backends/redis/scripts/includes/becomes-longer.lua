-- PEXPIRE knows GT from Redis 7.0 on, as scripts know the version.
local GT = redis.REDIS_VERSION_NUM and 'GT'

-- Sets the lease of a lock if that makes it longer, as nearly every renewal does. Returns whether it has. Otherwise,
-- nothing is changed: the lease may become shorter, or the server is too old to say.
local function becomesLonger(lock, lease)
  return GT and redis.call('PEXPIRE', lock, lease, GT) == 1
end
