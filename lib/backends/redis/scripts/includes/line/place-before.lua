-- The first place in front of `owner`, or in the whole line if it has none: { ms until it lapses, its owner }, or nil.
-- Readers go past other readers. A user who may not read the line finds nobody in it.
local function placeBefore(lock, owner, reads, now)
  local line = redis.pcall('ZRANGE', prefixed('nestjs_redis_lock_turns', lock), 0, -1)
  -- Most locks have no line, and their path must be fast.
  if not line[1] then
    return nil
  end
  local _, lapses, terms = lineOf(lock)
  for _, place in ipairs(line) do
    if place == owner then
      return nil
    end
    local left = math.floor(redis.call('ZSCORE', lapses, place) or 0) - now
    if left > 0 and not (reads and redis.call('HGET', terms, place) == 't read') then
      return { left, place }
    end
  end
end
