-- Sets the lease of a key that was just written. Where Redis refuses that (no right to PEXPIRE), a key without any lease would stay
-- for ever, so it goes.
local function expire(key, lease)
  local set = redis.pcall('PEXPIRE', key, lease)
  if type(set) == 'table' then
    if redis.call('PTTL', key) == -1 then
      redis.call('DEL', key)
    end
    error(set.err, 0)
  end
end
