-- The line of a lock: a zset of places (owner ids) in order, and another one of the times at which they lapse.
local function lineOf(lock)
  return prefixed('nestjs_redis_lock_turns', lock), prefixed('nestjs_redis_lock_turns_until', lock)
end
