-- Tells the waiters of a semaphore how many permits are available, if there are any.
local function publishPermits(publish, semaphore, available)
  if available > 0 then
    publishTo(publish, prefixed('redisson_sc', semaphore), available)
  end
end
