--[[
  Renews the locks of single flights, each for its owner. A record of forgotten results is kept for as long as the run
  that it concerns. A run's lease never becomes shorter, so nobody is woken.

  KEYS[2i - 1]  lock
  KEYS[2i]      forgotten: see forget-result-4.lua

  ARGV[1]       PUBLISH or SPUBLISH, as for the other types; not used
  ARGV[2]       lease time in ms
  ARGV[2 + i]   owner

  Returns { server time in ms, answer, ... }: RENEWED (1), NOT_HELD (0), or { { error, types of the keys } }.
]]
-- @includes
local lease = ARGV[2]

local function renew(i)
  local lock = KEYS[2 * i - 1]
  if not holdsPlain(lock, ARGV[2 + i]) then
    return 0
  end
  redis.call('PEXPIRE', KEYS[2 * i], string.format('%.0f', lease + FORGOTTEN_LONGER))
  return redis.call('PEXPIRE', lock, lease)
end

local answers = { serverTime() }
for i = 1, #ARGV - 2 do
  answers[1 + i] = answerOf(renew, i, 2 * i - 1, 2)
end
return answers
