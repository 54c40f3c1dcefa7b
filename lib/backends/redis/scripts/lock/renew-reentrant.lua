--[[
  Renews re-entrant and fenced locks.

  KEYS[i]  lock
]]
-- @template renew
if not holdsPlain(lock, owner) then
  return 0
end
if becomesLonger(lock, ARGV[2]) then
  return 1
end
local former = redis.call('PTTL', lock)
redis.call('PEXPIRE', lock, ARGV[2])
wakeLineIfShorter(lock, publish, prefixed('redisson_lock__channel', lock), '0', former, lease)
