-- The line of a lock: a zset of places (owner ids) in order, another one of the times at which they lapse, and a hash of
-- the terms that places have: see token-of-grant.lua.
local function lineOf(lock)
  return prefixed('nestjs_redis_lock_turns', lock), prefixed('nestjs_redis_lock_turns_until', lock),
    prefixed('nestjs_redis_lock_turns_terms', lock)
end
