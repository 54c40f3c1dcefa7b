--[[
  Transfers a re-entrant or fenced lock from its owner to another one, with a fresh lease. If it is sent twice, it
  transfers the lock once.

  KEYS[1]  clock of the fencing tokens, or the counter of a fenced lock
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
local former = redis.call('PTTL', lock)

if not holdsPlain(lock, from) and not holdsPlain(lock, to) then
  return nil
end
reserveTokens(KEYS[1], tonumber(ARGV[4]), 1)
redis.call('HDEL', lock, from)
takePlain(lock, to, lease)
wakeLineIfShorter(lock, ARGV[7], prefixed('redisson_lock__channel', lock), '0', former, leaseTime)
return { nextToken(), reserved }
