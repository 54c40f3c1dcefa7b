-- Wakes the waiters of a lock whose lease has become shorter.
local function wakeIfShorter(command, channel, message, former, lease)
  if becomesShorter(former, lease) then
    publishTo(command, channel, message)
  end
end
