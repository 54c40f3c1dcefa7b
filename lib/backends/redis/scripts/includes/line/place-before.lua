-- The first place in front of `owner`, or in the whole line if it has none: { ms until it lapses, its owner }, or nil.
-- Readers go past other readers. A user who may not read the line finds nobody in it.
local function placeBefore(lock, owner, reads, now)
  local line = redis.pcall('ZRANGE', prefixed('nestjs_redis_lock_turns', lock), 0, -1)
  -- Most locks have no line, and their path must be fast.
  if not line[1] then
    return nil
  end
  local lapses, terms = lineOf(lock).lapses, lineOf(lock).terms
  for _, place in ipairs(line) do
    if place == owner then
      return nil
    end
    local lapse = tonumber(redis.call('ZSCORE', lapses, place) or 0)
    local left = math.floor(lapse) - now
    if left > 0 then
      local wants = redis.call('HGET', terms, place)
      -- See place-of.lua. What is no place is not in the way.
      if (wants or lapse % 1 > 0) and not (reads and wants == 't read') then
        return { left, place }
      end
    end
  end
end
