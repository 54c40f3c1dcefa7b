-- A lock that n may hold is a zset: each owner, and when its lease ends, in ms of the server's time. The key lasts until
-- the latest of these times.

-- Returns { ms until the first of its leases ends, its owner }. Fails for a zset that is no lock, because it belongs to
-- another program and must not be changed or waited for.
local function firstToEnd(lock, now)
  local ended = redis.call('ZCOUNT', lock, '-inf', now)
  local first = redis.call('ZRANGE', lock, ended, ended, 'WITHSCORES')
  if not first[1] then
    first = redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')
  end
  if not first[1] or not isOwner(first[1]) or redis.call('PTTL', lock) < 0 then
    error('NOTALOCK a sorted set with other members than owners', 0)
  end
  return { math.max(1, first[2] - now), first[1] }
end
