--[[
  Advances a clock of fencing tokens, so that it continues above a token that another server has given.

  KEYS[1]  clock of the fencing tokens; for a fenced lock, its own counter

  ARGV[1]  token

  Returns 1 when the clock was behind, else 0.
]]
local clock, token = KEYS[1], ARGV[1]

if tonumber(redis.call('GET', clock) or 0) >= tonumber(token) then
  return 0
end
redis.call('SET', clock, token)
return 1
