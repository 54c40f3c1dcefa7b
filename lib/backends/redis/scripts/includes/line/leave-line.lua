-- Ends a place, and what the zset of lapses says under these other members. Returns 1 if there was a place.
local function leaveLine(line, owner, ...)
  redis.call('ZREM', line.lapses, owner, ...)
  redis.call('HDEL', line.terms, owner)
  local left = redis.call('ZREM', line.places, owner)
  if redis.call('EXISTS', line.places) == 0 then
    redis.call('DEL', line.lapses)
  end
  return left
end
