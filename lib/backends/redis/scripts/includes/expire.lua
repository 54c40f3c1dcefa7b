-- Sets the lease of a key that was just written. If Redis refuses (the user may not call PEXPIRE), deletes the key,
-- because it would remain forever without a lease.
local function expire(key, lease)
  local set = redis.pcall('PEXPIRE', key, lease)
  if type(set) == 'table' then
    if redis.call('PTTL', key) == NO_LEASE then
      redis.call('DEL', key)
    end
    error(set.err, 0)
  end
end
