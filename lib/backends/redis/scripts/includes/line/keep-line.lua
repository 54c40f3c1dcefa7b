-- Keeps the keys of a line for at least `time` ms. A key that would expire sooner gets twice that time, because each write
-- goes to the replicas and into the AOF, and a long line is kept by somebody every few ms. Whoever keeps an existing line
-- also keeps what it says about the newest call, because others write nothing until the line would expire again.
local function keepLine(line, time)
  local wasKept = false
  for _, key in ipairs({ line.places, line.lapses, line.terms }) do
    local left = redis.call('PTTL', key)
    if left < time and left ~= NO_KEY then
      redis.call('PEXPIRE', key, time * 2)
      wasKept = wasKept or left ~= NO_LEASE
    end
  end
  if wasKept then
    redis.call('PEXPIRE', newestOf(line.lock), time * 10)
  end
end
