--[[
  Reads fields of a client's record. Changes nothing.

  KEYS[1]      record: hash

  ARGV[1]      maximum size of a value, in bytes
  ARGV[1 + i]  field

  Returns { server time in ms, value or nil, ... }. Returns only the time if the key is not a hash, or a value is
  larger.
]]
-- @includes
local record, longest = KEYS[1], tonumber(ARGV[1])
local reply = { serverTime() }

for i = 2, #ARGV do
  local value = redis.pcall('HGET', record, ARGV[i])
  if type(value) == 'table' or (value and #value > longest) then
    return { reply[1] }
  end
  reply[i] = value
end
return reply
