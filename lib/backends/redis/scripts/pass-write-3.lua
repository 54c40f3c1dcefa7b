--[[
  Passes the write side from its owner to another one, with a fresh lease. Sent twice, it passes once.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock
  KEYS[3]  zset: writers that wait

  ARGV[1]  server time in ms after which it is not executed
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  tokens to reserve
  ARGV[5]  owner until now
  ARGV[6]  owner from now on
  ARGV[7]  PUBLISH or SPUBLISH

  Returns { token, reserved }, or nil when neither of them is there, or the first goes on reading;
  { 'expired', server time in ms } when it came too late.
]]
-- @include request
-- @include tokens
-- @include publish
-- @include read-write
local lock, from, to = KEYS[2], ARGV[5], ARGV[6]

if writes(lock, from) then
  redis.call('HDEL', lock, from .. ':write')
  if longestReader(lock) then
    endWriting(lock)
    tell(ARGV[7], prefixed('redisson_rwlock', lock), '1')
    return nil
  end
elseif not writes(lock, to) then
  return nil
end
openClock(KEYS[1], tonumber(ARGV[4]), 1)
takeWriter(lock, to, KEYS[3], leaseTime)
return { drawToken(), reserved }
