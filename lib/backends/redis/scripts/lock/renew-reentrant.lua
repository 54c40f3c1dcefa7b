--[[
  Renews re-entrant, fair and fenced locks, each for its owner.

  KEYS[i]      lock

  ARGV[1]      lease time in ms
  ARGV[1 + i]  owner

  Returns { server time in ms, answer, ... }: RENEWED (1), NOT_HELD (0), or { { error, type of the lock } }.
]]
-- @include server-time
-- @include answer-of
-- @include plain/holds-plain
local lease = ARGV[1]

local function renew(i)
  if not holdsPlain(KEYS[i], ARGV[1 + i]) then
    return 0
  end
  return redis.call('PEXPIRE', KEYS[i], lease)
end

local answers = { serverTime() }
for i = 1, #KEYS do
  answers[1 + i] = answerOf(renew, i, i, 1)
end
return answers
