-- The line of a lock: a zset of places (owner ids) in order, another one of the times at which they lapse, and a hash of
-- their terms (see place-of.lua). Who lacks one of the three is no place. The zset of lapses also has two times that
-- belong to no place:
--   outside  until when a free lock is left to clients that stand in no line. It exists from a release that left the lock
--            free until the line is granted the lock
--   told     until when a free lock is left to the first of the places that were notified of it
local HEAD_START_UNTIL, TOLD_UNTIL = 'outside', 'told'

local function lineOf(lock)
  return {
    lock = lock,
    places = prefixed('nestjs_redis_lock_turns', lock),
    lapses = prefixed('nestjs_redis_lock_turns_until', lock),
    terms = prefixed('nestjs_redis_lock_turns_terms', lock),
  }
end

local function timeIn(line, member)
  return tonumber(redis.call('ZSCORE', line.lapses, member))
end

-- The hash about the newest call of a line: see enter-as-newest.lua.
local function newestOf(lock)
  return prefixed('nestjs_redis_lock_turns_newest', lock)
end
