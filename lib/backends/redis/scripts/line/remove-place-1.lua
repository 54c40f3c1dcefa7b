--[[
  Gives up a place in the line of a lock. If the lock was granted to it meanwhile, passes the lock on.

  KEYS[1]  lock

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  clock of the fencing tokens
  ARGV[3]  owner

  Returns 1, or 0 when it had no place and does not hold the lock.
]]
-- @include line/time-of-grant
-- @includes
local lock, publish, clock, owner = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local line = lineOf(lock)
local kind = typeOf(lock)
local wasFirst = redis.call('ZRANGE', line.places, 0, 0)[1] == owner
local wrote = redis.call('HGET', line.terms, owner) == 't write'

if leaveLine(line, owner) == 1 then
  local isHash = kind == 'hash'
  -- Readers of a quorum gave way to the writer, and wait in no line.
  local isWritten = isHash and redis.call('HGET', lock, 'mode') == 'write'
  if wrote and not isWritten and not placeBefore(lock, owner, true, serverTime()) then
    publishTo(publish, prefixed('redisson_rwlock', lock), '1')
  end
  -- Who is first listens to releases of clients that know no line.
  if wasFirst and isHash and isHeldByOthers(redis.call('HKEYS', lock)) then
    tellLine(lock, publish, clock)
  else
    serveLine(lock, publish, clock)
  end
  return 1
end
if kind ~= 'zset' and holdsPlain(lock, owner) then
  redis.call('HDEL', lock, owner)
elseif kind == 'zset' and redis.call('ZREM', lock, owner) == 1 then
  fitToPermits(lock, serverTime())
else
  return 0
end
local listeners = publishTo(publish, prefixed('redisson_lock__channel', lock), '0')
serveLine(lock, publish, clock, listeners or 0)
return 1
