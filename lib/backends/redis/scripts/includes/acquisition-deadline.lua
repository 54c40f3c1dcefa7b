-- How scripts that acquire a lock begin. Their caller has stopped waiting for them at ARGV[1], in ms of the server's
-- time: after that they do nothing. Defines `micros`, the server's time in µs since 1970.
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
if micros > ARGV[1] * 1000 then
  return { 'expired', math.floor(micros / 1000) }
end
