--[[
  Passes a hold of the read side from its owner to another one, with a fresh lease. Sent twice, it passes once.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock

  ARGV[1]  server time in ms after which it is not executed
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  tokens to reserve
  ARGV[5]  owner until now
  ARGV[6]  owner from now on

  Returns { token, reserved }, or nil when neither of them is there, or the lock is written by the first;
  { 'expired', server time in ms } when it came too late.
]]
-- @include request
-- @include tokens
-- @include read-write
local lock, from, to = KEYS[2], ARGV[5], ARGV[6]

if reads(lock, from) then
  redis.call('HDEL', lock, from)
  redis.call('DEL', readLease(lock, from, 1))
  if redis.call('HGET', lock, 'mode') == 'write' then
    return nil
  end
elseif not reads(lock, to) then
  return nil
end
openClock(KEYS[1], tonumber(ARGV[4]), 1)
takeReader(lock, to, leaseTime)
if redis.call('HGET', lock, 'mode') == 'read' then
  fitToReaders(lock)
end
return { drawToken(), reserved }
