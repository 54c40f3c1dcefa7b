-- The queue of a fair lock in Redisson's format: a list of owners, and in `timeouts` the time (ms) at which each of
-- them is dropped from the queue. Our waiters send heartbeats. They are also in `heartbeats`, with the time until which
-- each counts as alive. Java's waiters are not.
local function fairQueue(first)
  return { list = KEYS[first], timeouts = KEYS[first + 1], heartbeats = KEYS[first + 2] }
end
