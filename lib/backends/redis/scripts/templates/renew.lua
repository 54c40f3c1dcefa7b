--[[
  Renews locks, each for its owner. If a lease becomes shorter, wakes waiters, because they would sleep until the former
  lease ended.

  What a kind says runs for each lock. `lock` and `owner` are this lock and its owner, and the keys of the lock begin with
  KEYS[first]. It returns NOT_HELD (0), or sets the lease.

  ARGV[1]      PUBLISH or SPUBLISH
  ARGV[2]      lease time in ms
  ARGV[2 + i]  owner

  Returns { server time in ms, answer, ... }: RENEWED (1), NOT_HELD (0), or { { error, types of the keys } }.
]]
-- @include line/time-of-grant
-- @includes
local publish, lease, now = ARGV[1], tonumber(ARGV[2]), serverTime()

local function renew(i, first)
  local lock, owner = KEYS[first], ARGV[2 + i]
  -- @kind
  return 1
end

local answers = { now }
local keysOfEach = #KEYS / (#ARGV - 2)
for i = 1, #ARGV - 2 do
  answers[1 + i] = answerOf(renew, i, keysOfEach * (i - 1) + 1, keysOfEach)
end
return answers
