--[[
  Renews locks, each for its owner. If a lease becomes shorter, wakes waiters, because they would sleep until the former
  lease ended.

  What a kind says runs for each lock. `lock` and `owner` are this lock and its owner, and the keys of the lock begin with
  KEYS[first]. It returns NOT_HELD (0), or sets the lease.

  ARGV[1]      PUBLISH or SPUBLISH
  ARGV[2]      lease time in ms
  ARGV[2 + i]  owner

  A thread that renews while the event loop of its process is blocked puts a number before these: the server time in ms
  after which the script does nothing. This is `limit` then, and no lease becomes shorter, because that thread does not
  know what the loop has done meanwhile.

  Returns { server time in ms, answer, ... }: RENEWED (1), NOT_HELD (0), or { { error, types of the keys } }.
]]
-- @include line/time-of-grant
-- @includes
local limit, now = tonumber(ARGV[1]), serverTime()
if limit and now > limit then
  return { 'expired', now }
end
local before = limit and 1 or 0
local publish, time = ARGV[before + 1], ARGV[before + 2]
local lease = tonumber(time)

local function renew(i, first)
  local lock, owner = KEYS[first], ARGV[before + 2 + i]
  -- @kind
  return 1
end

local answers = { now }
local count = #ARGV - before - 2
local keysOfEach = #KEYS / count
for i = 1, count do
  answers[1 + i] = answerOf(renew, i, keysOfEach * (i - 1) + 1, keysOfEach)
end
return answers
