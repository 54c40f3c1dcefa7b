-- The remaining ms of the longest of a reader's leases, as PTTL would return it. `holds` is a result of holdsIn.
local function longestHold(lock, reader, holds)
  local longest = NO_KEY
  for hold = 1, holds do
    longest = math.max(longest, redis.call('PTTL', readLease(lock, reader, hold)))
  end
  return longest
end
