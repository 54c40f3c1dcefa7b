-- The line of a lock: a zset of places (owner ids) in order, another one of the times at which they lapse, and a hash of
-- the terms that places have: `t read` or `t write` if they are told when they may ask, or see token-of-grant.lua. The zset
-- of lapses also has HEAD_START_UNTIL.
local function lineOf(lock)
  return prefixed('nestjs_redis_lock_turns', lock), prefixed('nestjs_redis_lock_turns_until', lock),
    prefixed('nestjs_redis_lock_turns_terms', lock)
end

-- The hash about the newest call of a line: see enter-as-newest.lua.
local function newestOf(lock)
  return prefixed('nestjs_redis_lock_turns_newest', lock)
end
