--[[
  Releases the write side of read/write locks, each for its owner, and wakes all who wait. A writer that reads as well goes on reading.

  KEYS[i]      lock

  ARGV[1]      PUBLISH or SPUBLISH; empty: tell nobody
  ARGV[1 + i]  owner

  Returns for each: how many listened, −2 when nobody could be told, { −1, server time in ms } when this owner was not there, or
  { { error, type of the lock } }.
]]
-- @include each
-- @include publish
-- @include read-write
local publish = ARGV[1]

local function release(i)
  local lock = KEYS[i]
  if redis.call('HDEL', lock, ARGV[1 + i] .. ':write') == 0 then
    return { -1, millis() }
  end
  endWriting(lock)
  return tell(publish, prefixed('redisson_rwlock', lock), '1')
end

local answers = {}
for i = 1, #KEYS do
  answers[i] = each(release, i, i, 1)
end
return answers
