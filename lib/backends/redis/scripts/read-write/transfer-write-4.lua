--[[
  Transfers the write side from its owner to another one, with a fresh lease. If it is sent twice, it transfers the
  write side once.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock
  KEYS[3]  lease of the present owner as a reader, if it also reads
  KEYS[4]  lease of the next owner as a reader, if it also reads

  ARGV[1]  server time in ms after which the script does nothing
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  tokens to reserve
  ARGV[5]  present owner
  ARGV[6]  next owner
  ARGV[7]  PUBLISH or SPUBLISH

  Returns { token, reserved }, or nil when neither of the two owners holds the write side, or the present owner
  also reads.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local lock, from, to = KEYS[2], ARGV[5], ARGV[6]
local channel, former = prefixed('redisson_rwlock', lock), redis.call('PTTL', lock)

if isWriter(lock, from) then
  redis.call('HDEL', lock, from .. ':write')
  if longestReader(lock) then
    endWriting(lock)
    publishTo(ARGV[7], channel, '1')
    pcall(serveLine, lock, ARGV[7], 0, true)
    return nil
  end
elseif not isWriter(lock, to) then
  return nil
end
reserveTokens(KEYS[1], tonumber(ARGV[4]), 1)
takeWriter(lock, to, leaseTime)
wakeLineIfShorter(lock, ARGV[7], channel, '1', former, leaseTime)
return { nextToken(), reserved }
