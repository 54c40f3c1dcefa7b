-- ZADD comes first, so that a server whose memory is full refuses a new holder. It does not refuse one that has just left
-- the line, because the script has written by then.
local function takePermit(lock, owner, lease, now)
  local ends = tonumber(redis.call('ZSCORE', lock, owner) or 0)
  redis.call('ZADD', lock, math.max(ends, now + lease), owner)
  fitToPermits(lock, now)
end
