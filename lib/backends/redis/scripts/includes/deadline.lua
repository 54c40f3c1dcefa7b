-- Every script that takes permits begins with this.
--   ARGV[1]  server time in ms after which the script does nothing, because its caller has stopped waiting
-- Defines `now`, the server's time in ms since 1970.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now > tonumber(ARGV[1]) then
  return { 'expired', now }
end
