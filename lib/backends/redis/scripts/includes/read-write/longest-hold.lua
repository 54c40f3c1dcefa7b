-- How many ms the longest of a reader's leases has left, as PTTL would return it. `holds` is a result of holdsIn.
local function longestHold(lock, reader, holds)
  local longest = NO_KEY
  for hold = 1, holds do
    longest = math.max(longest, redis.call('PTTL', readLease(lock, reader, hold)))
  end
  return longest
end
