--[[
  Releases the read side of read/write locks, each for its owner. The last reader wakes a writer, and so
  does a reader that leaves the lock with a shorter lease.

  KEYS[2i - 1]  lock
  KEYS[2i]      lease of this reader

  ARGV[1]       PUBLISH or SPUBLISH; empty: notify nobody
  ARGV[1 + i]   owner

  Returns an answer for each: how many clients listened, NOT_PUBLISHED (-2; also when others still hold the lock),
  { NOT_HELD (-1), server time in ms }, or { { error, types of the keys } }.
]]
-- @include ttl-replies
-- @include release-replies
-- @include server-time
-- @include prefixed
-- @include suffixed
-- @include publish-to
-- @include becomes-shorter
-- @include wake-if-shorter
-- @include answer-of
-- @include is-owner
-- @include read-write/read-lease
-- @include has-field
-- @include read-write/is-reader
-- @include read-write/holds-in
-- @include read-write/longest-hold
-- @include read-write/longest-reader
-- @include read-write/fit-to-readers
local publish = ARGV[1]

local function release(i)
  local lock, lease, owner = KEYS[2 * i - 1], KEYS[2 * i], ARGV[1 + i]
  if not isReader(lock, owner) then
    return { NOT_HELD, serverTime() }
  end
  local left = redis.call('PTTL', lease)
  redis.call('DEL', lease)
  redis.call('HDEL', lock, owner)
  if redis.call('HGET', lock, 'mode') == 'write' then
    return NOT_PUBLISHED
  end
  local former = redis.call('HLEN', lock) > 1 and redis.call('PTTL', lock)
  -- Another reader is alive and has the longest lease.
  if former and left < former - 1 then
    return NOT_PUBLISHED
  end
  local channel = prefixed('redisson_rwlock', lock)
  if fitToReaders(lock) then
    wakeIfShorter(publish, channel, '0', former, redis.call('PTTL', lock))
    return NOT_PUBLISHED
  end
  return publishTo(publish, channel, '0') or NOT_PUBLISHED
end

local answers = {}
for i = 1, #KEYS / 2 do
  answers[i] = answerOf(release, i, 2 * i - 1, 2)
end
return answers
