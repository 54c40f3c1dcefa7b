-- The field is set, not incremented, because a command that is sent twice must not count twice. What the owner already holds
-- never becomes shorter: its lease may have been renewed since this request was sent, or granted for longer.
local function takePlain(lock, owner, lease)
  if redis.call('HSET', lock, owner, '1') == 1 or redis.call('PTTL', lock) < tonumber(lease) then
    expire(lock, lease)
  end
end
