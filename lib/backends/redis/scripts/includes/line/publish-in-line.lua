-- Whether the user may publish to the channels of a line, as far as this call knows.
local mayPublishInLine = true

-- Sends a message to the process of a place. Returns false if it was refused.
local function publishInLine(line, publish, owner, message)
  local isSent = publishTo(publish, channelInLine(line, owner), message) ~= nil
  mayPublishInLine = mayPublishInLine and isSent
  return isSent
end
