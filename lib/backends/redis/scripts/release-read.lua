--[[
  Releases the read side of read/write locks, each for its owner. The last reader wakes a writer.

  KEYS[2i - 1]  lock
  KEYS[2i]      lease of this reader

  ARGV[1]       PUBLISH or SPUBLISH; empty: tell nobody
  ARGV[1 + i]   owner

  Returns for each: how many listened, −2 when others still hold the lock or nobody could be told, { −1, server time in ms } when this
  owner was not there, or { { error, types } }.
]]
-- @include each
-- @include publish
-- @include read-write
local publish = ARGV[1]

local function release(i)
  local lock, lease, owner = KEYS[2 * i - 1], KEYS[2 * i], ARGV[1 + i]
  if not reads(lock, owner) then
    return { -1, millis() }
  end
  local left = redis.call('PTTL', lease)
  redis.call('DEL', lease)
  redis.call('HDEL', lock, owner)
  if redis.call('HGET', lock, 'mode') == 'write' then
    return -2
  end
  -- Another one has the longest lease, and is alive.
  if redis.call('HLEN', lock) > 1 and left < redis.call('PTTL', lock) - 1 then
    return -2
  end
  if fitToReaders(lock) then
    return -2
  end
  return tell(publish, prefixed('redisson_rwlock', lock), '0')
end

local answers = {}
for i = 1, #KEYS / 2 do
  answers[i] = each(release, i, 2 * i - 1, 2)
end
return answers
