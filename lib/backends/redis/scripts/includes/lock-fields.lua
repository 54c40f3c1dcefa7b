-- No lock has this many readers, and reading more fields would block the server.
local MOST_FIELDS = 100000

-- The fields of a lock's hash: owners, writers as `<owner>:write`, and `mode` of a read/write lock. The list is
-- empty if the lock is free. Fails for a hash with other fields, because it belongs to another program and must not be
-- changed or waited for.
-- If n may hold the lock, it is no hash: the second value is then { ms until the first of its leases ends, its owner }.
local function lockFields(lock)
  if typeOf(lock) == 'zset' then
    local time = redis.call('TIME')
    return {}, firstToEnd(lock, time[1] * 1000 + math.floor(time[2] / 1000))
  end
  local count = redis.pcall('HLEN', lock)
  if type(count) == 'table' then
    error(count.err, 0)
  end
  local fields = count <= MOST_FIELDS and redis.call('HKEYS', lock) or {}
  local isLock = count <= MOST_FIELDS
  for _, field in ipairs(fields) do
    if field == 'mode' then
      local mode = redis.call('HGET', lock, 'mode')
      isLock = isLock and (mode == 'read' or mode == 'write')
    else
      isLock = isLock and isOwner((string.gsub(field, ':write$', '')))
    end
  end
  if not isLock then
    error('NOTALOCK a hash with other fields than owners', 0)
  end
  return fields
end
