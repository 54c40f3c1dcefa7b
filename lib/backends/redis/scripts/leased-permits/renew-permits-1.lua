--[[
  Sets the leases of permits that are held.

  KEYS[1]      zset: ids of the permits that are held, and when the lease of each ends

  ARGV[1]      lease time in ms, from now on
  ARGV[1 + i]  id, in hexadecimal digits

  Returns a string with a digit for each id: 1, or 0 when it is not held.
]]
-- @includes
local held, leaseTime = KEYS[1], tonumber(ARGV[1])
local now = serverTime()
local digits = {}

for i = 2, #ARGV do
  local id = rawId(ARGV[i])
  local ends = redis.call('ZSCORE', held, id)
  if ends and tonumber(ends) > now then
    writeAlthoughFull(held, 'ZADD', held, now + leaseTime, id)
    digits[#digits + 1] = '1'
  else
    digits[#digits + 1] = '0'
  end
end
return table.concat(digits)
