--[[
  Renews the read side of read/write locks, each for its owner. If a lock ends earlier than before,
  wakes waiters, because they would sleep until its former end.

  KEYS[2i - 1]  lock
  KEYS[2i]      lease of this reader

  ARGV[1]       PUBLISH or SPUBLISH
  ARGV[2]       lease time in ms
  ARGV[2 + i]   owner

  Returns { server time in ms, answer, ... }: RENEWED (1), NOT_HELD (0), or { { error, types of the keys } }.
]]
-- @include line/time-of-grant
-- @includes
local publish, lease = ARGV[1], tonumber(ARGV[2])

local function renew(i)
  local lock, owner = KEYS[2 * i - 1], ARGV[2 + i]
  if not isReader(lock, owner) then
    return 0
  end
  local former = redis.call('PTTL', lock)
  writeReadLease(lock, owner, lease)
  wakeLineIfShorter(lock, publish, prefixed('redisson_rwlock', lock), '0', former, redis.call('PTTL', lock))
  return 1
end

local answers = { serverTime() }
for i = 1, #KEYS / 2 do
  answers[1 + i] = answerOf(renew, i, 2 * i - 1, 2)
end
return answers
