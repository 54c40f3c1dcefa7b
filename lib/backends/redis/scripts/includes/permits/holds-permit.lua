-- Whether this owner is one of those that hold the lock. A lock of another type under the name has another owner.
local function holdsPermit(lock, owner, now)
  local ends = redis.pcall('ZSCORE', lock, owner)
  if type(ends) == 'table' and redis.call('TYPE', lock).ok ~= 'hash' then
    error(ends.err, 0)
  end
  return type(ends) == 'string' and tonumber(ends) > now
end
