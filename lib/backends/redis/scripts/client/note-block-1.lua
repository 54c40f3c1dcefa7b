--[[
  Notes in the record of a client that its event loop is blocked. Nothing happens if the client has no record.

  KEYS[1]  record: hash

  ARGV[1]  ms since the event loop gave a sign of life
  ARGV[2]  ms for which to keep the record
]]
-- @includes
local now = serverTime()
if redis.call('PEXPIRE', KEYS[1], ARGV[2]) == 1 then
  redis.call('HSET', KEYS[1], 'blockedAt', now, 'blockedSince', now - ARGV[1])
end
