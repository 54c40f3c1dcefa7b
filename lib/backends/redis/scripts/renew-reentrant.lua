--[[
  Renews re-entrant, fair and fenced locks, each for its owner.

  KEYS[i]      lock

  ARGV[1]      lease time in ms
  ARGV[1 + i]  owner

  Returns { server time in ms, answer, ... }: 1, 0 when this owner is not there, or { { error, type of the lock } }.
]]
-- @include each
-- @include plain-lock
-- @include time
local lease = ARGV[1]

local function renew(i)
  if not holdsPlain(KEYS[i], ARGV[1 + i]) then
    return 0
  end
  return redis.call('PEXPIRE', KEYS[i], lease)
end

local answers = { millis() }
for i = 1, #KEYS do
  answers[1 + i] = each(renew, i, i, 1)
end
return answers
