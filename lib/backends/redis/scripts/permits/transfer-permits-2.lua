--[[
  Transfers a permit of a lock that n may hold. Waiters sleep until the first of the leases ends.
]]
-- @template transfer
local channel, message = prefixed('redisson_lock__channel', lock), '0'
local now = math.floor(micros / 1000)
if not holdsPermit(lock, from, now) and not holdsPermit(lock, to, now) then
  return nil
end
local former = firstToEnd(lock, now)[1]
reserveTokens(KEYS[1], reserve, 1)
redis.call('ZREM', lock, from)
takePermit(lock, to, leaseTime, now)
