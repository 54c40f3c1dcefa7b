-- ARGV[1] is the server time in ms after which the request must not be executed any more: its caller does not wait that long.
-- Afterwards `now` is the server's time in ms since 1970.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now > tonumber(ARGV[1]) then
  return { 'expired', now }
end
