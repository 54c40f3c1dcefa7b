-- Notifies the waiters of a semaphore of the available permits, if there are any.
local function publishPermits(publish, semaphore, available)
  if available > 0 then
    publishTo(publish, prefixed('redisson_sc', semaphore), available)
  end
end
