--[[
  Transfers a re-entrant or fenced lock.
]]
-- @template transfer
local channel, message = prefixed('redisson_lock__channel', lock), '0'
local former = redis.call('PTTL', lock)
if not holdsPlain(lock, from) and not holdsPlain(lock, to) then
  return nil
end
reserveTokens(KEYS[1], reserve, 1)
redis.call('HDEL', lock, from)
takePlain(lock, to, lease)
