--[[
  Sets the leases of permits that are held.

  KEYS[1]      zset: ids of the permits that are held, and when the lease of each ends

  ARGV[1]      '', or the server time in ms after which the script does nothing, and before which no lease becomes
               shorter: see templates/renew.lua
  ARGV[2]      lease time in ms, from now on
  ARGV[2 + i]  id, in hexadecimal digits

  Returns a string with a digit for each id: 1, or 0 when it is not held.
]]
-- @includes
local held, limit, leaseTime = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local now = serverTime()
if limit and now > limit then
  return { 'expired', now }
end
local digits = {}

for i = 3, #ARGV do
  local id = rawId(ARGV[i])
  local ends = redis.call('ZSCORE', held, id)
  if ends and tonumber(ends) > now then
    if not limit or tonumber(ends) < now + leaseTime then
      writeAlthoughFull(held, 'ZADD', held, now + leaseTime, id)
    end
    digits[#digits + 1] = '1'
  else
    digits[#digits + 1] = '0'
  end
end
return table.concat(digits)
