-- How every request begins that takes a lock:
--   ARGV[1]  server time in ms after which it must not be executed any more: its caller does not wait that long
--   ARGV[2]  highest token that the caller has seen
--   ARGV[3]  lease time in ms
-- Afterwards: `micros`, the server's time in µs since 1970, `seen`, `leaseTime`, and `lease`, the same as the text that it came as: Redis
-- would write a number anew for each command. A lease that Redis would refuse must not come as far as to PEXPIRE: the key would be
-- there by then, and stay.
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
if micros > ARGV[1] * 1000 then
  return { 'expired', math.floor(micros / 1000) }
end
local lease = ARGV[3]
local seen, leaseTime = tonumber(ARGV[2]), tonumber(lease)
if not (seen and seen >= 0 and seen <= 9007199254740991) then
  return redis.error_reply('ERR the highest fencing token seen is not a number from 0 to 2^53 - 1')
end
if not (leaseTime and leaseTime >= 1 and leaseTime <= 315576000000 and leaseTime % 1 == 0) then
  return redis.error_reply('ERR the lease time is not a whole number of ms from 1 to ten years')
end
