--[[
  Gives a re-entrant or fenced lock its full lease, if it was granted to this owner and is still his. Its source is sent
  with each call, because its caller begins before the answer: an unknown checksum would be found too late.

  KEYS[1]  lock

  ARGV[1]  owner
  ARGV[2]  lease time in ms, not shorter than the time for which locks are granted

  Returns { server time in ms, 1 if he holds it }.
]]
-- @includes
local lock, owner, lease = KEYS[1], ARGV[1], tonumber(ARGV[2])

if not holdsPlain(lock, owner) then
  return { serverTime(), 0 }
end
if redis.call('PTTL', lock) < lease then
  redis.call('PEXPIRE', lock, lease)
end
return { serverTime(), 1 }
