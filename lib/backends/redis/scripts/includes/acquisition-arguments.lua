-- The arguments of every script that acquires a lock.
--   ARGV[1]  server time in ms after which the script does nothing, because its caller has stopped waiting
--   ARGV[2]  highest token that the caller has seen
--   ARGV[3]  lease time in ms
-- Defines `seen`, `leaseTime`, and `lease`, the text of the lease time as it was sent. (Redis would format a number
-- again for each command.) A lease time that Redis would refuse must not reach PEXPIRE, because by then the key exists
-- and would remain.
local lease = ARGV[3]
local seen, leaseTime = tonumber(ARGV[2]), tonumber(lease)
if not (seen and seen >= 0 and seen <= 9007199254740991) then
  return redis.error_reply('ERR the highest fencing token seen is not a number from 0 to 2^53 - 1')
end
if not (leaseTime and leaseTime >= 1 and leaseTime <= 315576000000 and leaseTime % 1 == 0) then
  return redis.error_reply('ERR the lease time is not a whole number of ms from 1 to ten years')
end
