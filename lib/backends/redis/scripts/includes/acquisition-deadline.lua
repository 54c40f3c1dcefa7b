-- Every script that acquires a lock begins with this. ARGV[1] is the deadline, in ms of the server's time. A script
-- that runs later does nothing, because its caller no longer waits. Defines `micros`, the server's time in µs since
-- 1970.
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
if micros > ARGV[1] * 1000 then
  return { 'expired', math.floor(micros / 1000) }
end
