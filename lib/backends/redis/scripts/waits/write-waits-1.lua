--[[
  Writes the waits of an owner that holds locks and waits for others.

  KEYS[1]  hash: a field for each wait

  ARGV[1]      server time in ms after which the script does nothing
  ARGV[2]      ms for which to keep the waits
  ARGV[3]      how many waits have ended
  ARGV[3 + i]  id of a wait that has ended
  ...          id and text of each wait that continues

  Returns 1, or { 'expired', server time in ms } when it runs too late.
]]
-- @include deadline
local waits, lifetime, going = KEYS[1], ARGV[2], 4 + ARGV[3]

for i = 4, going - 1 do
  redis.call('HDEL', waits, ARGV[i])
end
for i = going, #ARGV, 2 do
  redis.call('HSET', waits, ARGV[i], ARGV[i + 1])
end
if going <= #ARGV then
  redis.call('PEXPIRE', waits, lifetime)
end
return 1
