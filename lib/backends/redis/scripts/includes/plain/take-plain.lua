-- The field is set, not incremented, because a command that is sent twice must not count twice.
local function takePlain(lock, owner, lease)
  redis.call('HSET', lock, owner, '1')
  expire(lock, lease)
end
