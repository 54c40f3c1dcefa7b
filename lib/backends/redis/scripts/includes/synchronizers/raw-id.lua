-- A permit id is 16 raw bytes in Redis, and 32 hexadecimal digits outside.
local function rawId(hex)
  return (string.gsub(hex, '%x%x', function(digits)
    return string.char(tonumber(digits, 16))
  end))
end
