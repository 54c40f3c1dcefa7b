--[[
  Withdraws the announcement of a waiting writer. If it was the last one, wakes the readers that gave way.

  KEYS[1]  lock
  KEYS[2]  zset: waiting writers, and the time until which each counts as alive

  ARGV[1]  PUBLISH or SPUBLISH
  ARGV[2]  owner

  Returns 1, or 0 when it was not announced.
]]
-- @include server-time
-- @include prefixed
-- @include publish-to
local lock, writers = KEYS[1], KEYS[2]
local publish, owner = ARGV[1], ARGV[2]

if redis.call('ZREM', writers, owner) == 0 then
  return 0
end
redis.call('ZREMRANGEBYSCORE', writers, '-inf', serverTime())
if redis.call('EXISTS', writers) == 0 and redis.call('HGET', lock, 'mode') ~= 'write' then
  publishTo(publish, prefixed('redisson_rwlock', lock), '1')
end
return 1
