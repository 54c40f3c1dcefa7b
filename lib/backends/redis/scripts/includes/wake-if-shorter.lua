-- A lease that is shorter by less than this needs no message, in ms. Before 7.2, Redis reads its clock again within a
-- script, so a lease that was measured twice seems to have become shorter by a few ms.
local NEGLIGIBLE = 10

-- Wakes the waiters of a lock whose lease has become shorter. Otherwise they would sleep until the former lease ended,
-- because they know only that one.
local function wakeIfShorter(command, channel, message, former, lease)
  if former > lease + NEGLIGIBLE then
    publishTo(command, channel, message)
  end
end
