-- The next reading of a clock of fencing tokens. It writes nothing, so that Redis can still refuse the first write
-- of a script. Use `SET` to advance the clock afterwards.
local function nextReading(clock)
  local last = tonumber(redis.call('GET', clock))
  if not last then
    return math.max(micros + INITIAL_LEAD, seen + 1)
  end
  return math.max(micros, last + 1, seen + 1)
end
