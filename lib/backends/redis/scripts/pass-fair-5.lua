--[[
  Passes a fair lock from its owner to another one, who leaves the queue if it stands there. Sent twice, it passes once.

  KEYS[1]  clock of the fencing tokens
  KEYS[2]  lock
  KEYS[3]  queue: list of waiting owners
  KEYS[4]  zset: when the place of each lapses
  KEYS[5]  zset: until when each of our waiters is known to be alive

  ARGV[1]  server time in ms after which it is not executed
  ARGV[2]  highest token that the caller has seen
  ARGV[3]  lease time in ms
  ARGV[4]  tokens to reserve
  ARGV[5]  owner until now
  ARGV[6]  owner from now on

  Returns { token, reserved }, or nil when neither of them is there;
  { 'expired', server time in ms } when it came too late.
]]
-- @include request
-- @include tokens
-- @include plain-lock
-- @include fair-queue
local lock, from, to = KEYS[2], ARGV[5], ARGV[6]

if not holdsPlain(lock, from) and not holdsPlain(lock, to) then
  return nil
end
openClock(KEYS[1], tonumber(ARGV[4]), 1)
redis.call('HDEL', lock, from)
takePlain(lock, to, lease)
leaveQueue(fairQueue(3), to)
return { drawToken(), reserved }
