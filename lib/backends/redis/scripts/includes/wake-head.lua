-- @include names
-- @include publish
-- @include fair-queue

-- Tells the waiter of a fair lock who is next. Gives how many listened, and whom it told; nil when nobody waits.
local function wakeHead(queue, lock, publish, now)
  local head = headOf(queue, now)
  if not head then
    return nil
  end
  return tell(publish, prefixed('redisson_lock__channel', lock) .. ':' .. head, '0'), head
end
