-- @include names
-- @include publish
-- @include counter

-- Tells who waits for permits how many there are. None is no news.
local function tellPermits(publish, semaphore, available)
  if available > 0 then
    tell(publish, prefixed('redisson_sc', semaphore), available)
  end
end
