-- The queue of a fair lock, as Redisson keeps it: a list of owners, and in `timeouts` the time (ms) at which each of
-- them loses its place. Our waiters send heartbeats and are in `heartbeats` too, with the time until which each counts
-- as alive. Java's waiters are not.
local function fairQueue(first)
  return { list = KEYS[first], timeouts = KEYS[first + 1], heartbeats = KEYS[first + 2] }
end
