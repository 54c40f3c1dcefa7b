-- @include permits
-- @include time

-- Permit ids are 16 raw bytes in Redis, 32 hexadecimal digits outside.
local function rawId(hex)
  return (string.gsub(hex, '%x%x', function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

-- Makes the permits available whose lease has ended. Gives how many that were.
local function reclaimPermits(semaphore, held, now)
  local lapsed = redis.call('ZCOUNT', held, '-inf', now)
  if lapsed > 0 then
    redis.call('INCRBY', semaphore, lapsed)
    redis.call('ZREMRANGEBYSCORE', held, '-inf', now)
  end
  return lapsed
end
