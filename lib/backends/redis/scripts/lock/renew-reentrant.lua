--[[
  Renews re-entrant and fenced locks.

  KEYS[i]  lock
]]
-- @template renew
if not holdsPlain(lock, owner) then
  return 0
end
if becomesLonger(lock, time) then
  return 1
end
local former = redis.call('PTTL', lock)
if limit and former >= lease then
  return 1
end
redis.call('PEXPIRE', lock, time)
wakeLineIfShorter(lock, publish, prefixed('redisson_lock__channel', lock), '0', former, lease)
