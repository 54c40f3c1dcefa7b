-- @include names
-- @include holder
-- @include time
-- @include expire

-- A read/write lock: a hash with `mode`, a field for each reader and `<owner>:write` for the writer. Readers have leases of
-- their own, as keys beside the lock; the lock's own is the longest of them. The writer may read as well.

-- Java's readers count their holds, each with a lease; ours have one.
local function readLease(lock, owner, hold)
  return suffixed(lock, owner .. ':rwlock_timeout:' .. hold)
end

local function reads(lock, owner)
  return redis.call('HEXISTS', lock, 'mode') == 1
    and redis.call('HEXISTS', lock, owner) == 1
    and redis.call('EXISTS', readLease(lock, owner, 1)) == 1
end

local function writes(lock, owner)
  return redis.call('HEXISTS', lock, owner .. ':write') == 1
end

-- ms that the longest lease of a reader has left, and that reader; nil when nobody reads. Readers without a lease died, and are
-- dropped.
local function longestReader(lock)
  local longest, reader
  local fields = redis.call('HGETALL', lock)
  for f = 1, #fields, 2 do
    local owner = fields[f]
    if owner ~= 'mode' and not string.find(owner, ':write$') then
      local left = -2
      for hold = 1, tonumber(fields[f + 1]) do
        left = math.max(left, redis.call('PTTL', readLease(lock, owner, hold)))
      end
      if left == -2 then
        redis.call('HDEL', lock, owner)
      elseif not longest or left > longest then
        longest, reader = left, owner
      end
    end
  end
  return longest, reader
end

-- Lets a lock that is only read live as long as its readers. False: nobody reads, and it is gone.
local function fitToReaders(lock)
  local longest = longestReader(lock)
  if not longest then
    redis.call('DEL', lock)
    return false
  end
  if longest >= 0 then
    redis.call('PEXPIRE', lock, math.max(1, longest))
  end
  return true
end

local function busyReader(lock, owner, writers, preferWriters)
  local mode = redis.call('HGET', lock, 'mode')
  if mode == 'write' then
    if writes(lock, owner) then
      return nil
    end
    return { redis.call('PTTL', lock), holderOf(lock) }
  end
  local ttl = redis.call('PTTL', lock)
  if not mode and ttl ~= -2 then
    return { ttl, holderOf(lock) }
  end
  if not preferWriters or (mode and reads(lock, owner)) then
    return nil
  end
  local last = redis.call('ZRANGE', writers, -1, -1, 'WITHSCORES')
  local left = last[1] and tonumber(last[2]) - millis() or 0
  return left > 0 and { left, last[1] } or nil
end

-- Gives what the lease had left before.
local function writeReadLease(lock, owner, lease)
  local key = readLease(lock, owner, 1)
  local before = redis.call('PTTL', key)
  redis.call('SET', key, 1, 'PX', lease)
  return before
end

-- Lets the lock live as long as the lease that was just written.
local function fitToLease(lock, lease, before)
  local ttl = redis.call('PTTL', lock)
  if ttl < lease then
    expire(lock, lease)
  elseif before >= ttl - 1 and redis.call('HGET', lock, 'mode') == 'read' then
    fitToReaders(lock) -- its lease was the longest, and became shorter
  end
end

local function setReadLease(lock, owner, lease)
  fitToLease(lock, lease, writeReadLease(lock, owner, lease))
end

local function takeReader(lock, owner, lease)
  local before = writeReadLease(lock, owner, lease)
  redis.call('HSETNX', lock, 'mode', 'read')
  redis.call('HSET', lock, owner, '1')
  fitToLease(lock, lease, before)
end

local function busyWriter(lock, owner)
  local ttl = redis.call('PTTL', lock)
  if ttl == -2 or writes(lock, owner) then
    return nil
  end
  if redis.call('HGET', lock, 'mode') ~= 'read' then
    return { ttl, holderOf(lock) }
  end
  local left, reader = longestReader(lock)
  if left then
    return { left, reader }
  end
  redis.call('DEL', lock)
  return nil
end

local function setWriteLease(lock, owner, lease)
  expire(lock, math.max(lease, redis.call('PTTL', readLease(lock, owner, 1))))
end

local function takeWriter(lock, owner, writers, lease)
  redis.call('ZREM', writers, owner)
  redis.call('HSET', lock, 'mode', 'write', owner .. ':write', '1')
  setWriteLease(lock, owner, lease)
end

-- The writer has left: the lock is free, or is read by the one who wrote.
local function endWriting(lock)
  if redis.call('HLEN', lock) == 1 then
    redis.call('DEL', lock)
  else
    redis.call('HSET', lock, 'mode', 'read')
    fitToReaders(lock)
  end
end

-- Writers that wait: readers may stand back for them.
local function announceWriter(writers, owner, now, placeTimeout)
  redis.call('ZREMRANGEBYSCORE', writers, '-inf', now)
  redis.call('ZADD', writers, now + placeTimeout, owner)
  redis.call('PEXPIRE', writers, math.max(redis.call('PTTL', writers), placeTimeout))
end
