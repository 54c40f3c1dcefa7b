-- The type of a lock's key: 'none', 'hash', 'zset' if n may hold the lock, or another one, which no lock has. It is asked
-- before commands that only one of them has, because the server counts a wrong type as an error, which people watch.
local function typeOf(lock)
  return redis.pcall('TYPE', lock).ok
end
