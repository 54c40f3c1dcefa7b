--[[
  Transfers a lock from its owner to another one, with a fresh lease. If it is sent twice, it transfers the lock once.

  A kind of lock returns nil when neither of the two owners holds the lock. Otherwise it reserves a token, makes the next
  one the owner, and defines what wakes waiters:
    former            ms after which they would ask again
    channel, message  where they listen, and for what

  KEYS[1]  clock of the fencing tokens, or the counter of a fenced lock
  KEYS[2]  lock

  ARGV[1]  server time in ms after which the script does nothing
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  tokens to reserve
  ARGV[5]  present owner
  ARGV[6]  next owner
  ARGV[7]  PUBLISH or SPUBLISH

  Returns { token, reserved }, or nil.
  Returns { 'expired', server time in ms } when it runs too late.
]]
-- @include acquisition-deadline
-- @include acquisition-arguments
-- @includes
local lock, reserve, from, to, publish = KEYS[2], tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7]

-- @kind

wakeLineIfShorter(lock, publish, channel, message, former, leaseTime)
return { nextToken(), reserved }
