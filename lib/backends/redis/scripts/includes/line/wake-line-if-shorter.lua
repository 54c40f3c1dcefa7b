-- Wakes the waiters of a lock whose lease has become shorter: those who listen to its channel, and the first in line.
local function wakeLineIfShorter(lock, publish, channel, message, former, lease)
  if becomesShorter(former, lease) then
    publishTo(publish, channel, message)
    pcall(tellLine, lock, publish)
  end
end
