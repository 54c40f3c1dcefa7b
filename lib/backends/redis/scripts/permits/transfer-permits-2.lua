--[[
  Transfers a permit of a lock that n may hold from its owner to another one, with a fresh lease. If it is sent twice, it
  transfers the permit once.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock

  ARGV[1]  server time in ms after which the script does nothing
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  tokens to reserve
  ARGV[5]  present owner
  ARGV[6]  next owner
  ARGV[7]  PUBLISH or SPUBLISH

  Returns { token, reserved }, or nil when neither of the two owners holds the lock.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local lock, from, to = KEYS[2], ARGV[5], ARGV[6]
local now = math.floor(micros / 1000)

if not holdsPermit(lock, from, now) and not holdsPermit(lock, to, now) then
  return nil
end
local former = firstToEnd(lock, now)[1]
reserveTokens(KEYS[1], tonumber(ARGV[4]), 1)
redis.call('ZREM', lock, from)
takePermit(lock, to, leaseTime, now)
wakeLineIfShorter(lock, ARGV[7], prefixed('redisson_lock__channel', lock), '0', former, leaseTime)
return { nextToken(), reserved }
