-- Wakes the waiters of a lock whose lease has become shorter. Otherwise they would sleep until the former lease ended,
-- because they know only that one.
local function wakeIfShorter(command, channel, message, former, lease)
  if former > lease then
    publishTo(command, channel, message)
  end
end
