-- @include holder
-- @include expire

-- A lock with one owner: a hash of one field, without `mode`.

local function holdsPlain(lock, owner)
  return redis.call('HEXISTS', lock, owner) == 1 and redis.call('HEXISTS', lock, 'mode') == 0
end

-- Who is in the way of `owner`: { ttl, holder }, or nil. `ttl`: the lock's PTTL, if it is known already.
local function busyPlain(lock, owner, ttl)
  ttl = ttl or redis.call('PTTL', lock)
  if ttl == -2 then
    return nil
  end
  local fields = redis.call('HKEYS', lock)
  if #fields == 1 and fields[1] == owner then
    return nil
  end
  return { ttl, holderAmong(fields) }
end

-- The field is set, not counted up: a command that is sent twice must not count twice.
local function takePlain(lock, owner, lease)
  redis.call('HSET', lock, owner, '1')
  expire(lock, lease)
end
