--[[
  Withdraws the announcement of a writer that waits. The last one wakes the readers that stood back.

  KEYS[1]  lock
  KEYS[2]  zset: writers that wait, and until when that is believed

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  owner

  Returns 1, or 0 when there was none.
]]
-- @include names
-- @include publish
-- @include time
local lock, writers = KEYS[1], KEYS[2]

if redis.call('ZREM', writers, ARGV[2]) == 0 then
  return 0
end
redis.call('ZREMRANGEBYSCORE', writers, '-inf', millis())
if redis.call('EXISTS', writers) == 0 and redis.call('HGET', lock, 'mode') ~= 'write' then
  tell(ARGV[1], prefixed('redisson_rwlock', lock), '1')
end
return 1
