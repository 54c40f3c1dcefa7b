-- Sets the lease of a key that was just written. If Redis refuses (the user may not call PEXPIRE), a key without a
-- lease would stay forever, so it is deleted.
local function expire(key, lease)
  local set = redis.pcall('PEXPIRE', key, lease)
  if type(set) == 'table' then
    if redis.call('PTTL', key) == NO_LEASE then
      redis.call('DEL', key)
    end
    error(set.err, 0)
  end
end
