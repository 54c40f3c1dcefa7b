--[[
  Renews the write side of read/write locks, each for its owner.

  KEYS[i]      lock

  ARGV[1]      lease time in ms
  ARGV[1 + i]  owner

  Returns { server time in ms, answer, ... }: RENEWED (1), NOT_HELD (0), or { { error, type of the lock } }.
]]
-- @include ttl-replies
-- @include server-time
-- @include suffixed
-- @include expire
-- @include answer-of
-- @include read-write/read-lease
-- @include read-write/is-writer
-- @include read-write/set-write-lease
local lease = tonumber(ARGV[1])

local function renew(i)
  if not isWriter(KEYS[i], ARGV[1 + i]) then
    return 0
  end
  setWriteLease(KEYS[i], ARGV[1 + i], lease)
  return 1
end

local answers = { serverTime() }
for i = 1, #KEYS do
  answers[1 + i] = answerOf(renew, i, i, 1)
end
return answers
