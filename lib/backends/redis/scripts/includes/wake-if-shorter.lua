-- Wakes those who wait for a lock whose lease has become shorter. They would rest until the former lease ended, because
-- that is what they were told.
local function wakeIfShorter(command, channel, message, former, lease)
  if former > lease then
    publishTo(command, channel, message)
  end
end
