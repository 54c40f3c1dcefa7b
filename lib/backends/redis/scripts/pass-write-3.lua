--[[
  Passes the write side from its owner to another one, with a fresh lease. Sent twice, it passes once.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock
  KEYS[3]  zset: writers that wait

  ARGV[1]  lease time in ms
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  tokens to reserve
  ARGV[4]  owner until now
  ARGV[5]  owner from now on
  ARGV[6]  PUBLISH or SPUBLISH

  Returns { token, reserved }, or nil when neither of them is there, or the first goes on reading.
]]
-- @include tokens
-- @include publish
-- @include read-write
local lock, from, to = KEYS[2], ARGV[4], ARGV[5]

if writes(lock, from) then
  redis.call('HDEL', lock, from .. ':write')
  if longestReader(lock) then
    endWriting(lock)
    tell(ARGV[6], prefixed('redisson_rwlock', lock), '1')
    return nil
  end
elseif not writes(lock, to) then
  return nil
end
openClock(KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]), 1)
takeWriter(lock, to, KEYS[3], tonumber(ARGV[1]))
return { drawToken(), reserved }
