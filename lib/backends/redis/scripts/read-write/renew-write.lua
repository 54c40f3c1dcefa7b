--[[
  Renews the write side of read/write locks, each for its owner.

  KEYS[2i - 1]  lock
  KEYS[2i]      lease of this writer as a reader, if it also reads

  ARGV[1]       lease time in ms
  ARGV[1 + i]   owner

  Returns { server time in ms, answer, ... }: RENEWED (1), NOT_HELD (0), or { { error, types of the keys } }.
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
  local lock, owner = KEYS[2 * i - 1], ARGV[1 + i]
  if not isWriter(lock, owner) then
    return 0
  end
  setWriteLease(lock, owner, lease)
  return 1
end

local answers = { serverTime() }
for i = 1, #KEYS / 2 do
  answers[1 + i] = answerOf(renew, i, 2 * i - 1, 2)
end
return answers
