-- Keeps the keys of a line for at least `time` ms. A key that would expire sooner gets twice that time, because each write
-- goes to the replicas and into the AOF, and a long line is kept by somebody every few ms. Returns whether any got it.
local function keepLine(places, lapses, terms, time)
  local isWritten = false
  for _, key in ipairs({ places, lapses, terms }) do
    local left = redis.call('PTTL', key)
    if left < time and left ~= NO_KEY then
      redis.call('PEXPIRE', key, time * 2)
      isWritten = true
    end
  end
  return isWritten
end
