-- Keeps a key for at least `time` ms.
local function keepKey(key, time)
  redis.call('PEXPIRE', key, math.max(redis.call('PTTL', key), time))
end
