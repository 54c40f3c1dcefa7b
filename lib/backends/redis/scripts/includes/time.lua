-- The server's time in µs and in ms since 1970.
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function millis()
  return math.floor(micros() / 1000)
end
