--[[
  Advances a clock of fencing tokens so that it continues above a token that another server has issued. A clock that
  does not exist starts as far ahead as it does for a first token, because this server may have lost its data.

  KEYS[1]  clock of the fencing tokens, or the counter of a fenced lock

  ARGV[1]  token

  Returns 1 when the clock was behind, otherwise 0.
]]
local seen = tonumber(ARGV[1])
local micros
-- @includes
local clock = KEYS[1]

local last = redis.call('GET', clock)
if not last then
  local time = redis.call('TIME')
  micros = time[1] * 1000000 + time[2]
  setClock('SET', clock, math.max(micros + INITIAL_LEAD, seen), 0, 1)
elseif tonumber(last) < seen then
  redis.call('SET', clock, ARGV[1])
else
  return 0
end
return 1
