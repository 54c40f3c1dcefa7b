--[[
  Renews the locks of single flights. A record of forgotten results is kept for as long as the run that it concerns. A
  run's lease never becomes shorter, so nobody is woken.

  KEYS[2i - 1]  lock
  KEYS[2i]      forgotten: see forget-result-4.lua
]]
-- @template renew
if not holdsPlain(lock, owner) then
  return 0
end
if limit and redis.call('PTTL', lock) >= lease then
  return 1
end
redis.call('PEXPIRE', KEYS[first + 1], string.format('%.0f', lease + FORGOTTEN_LONGER))
redis.call('PEXPIRE', lock, time)
