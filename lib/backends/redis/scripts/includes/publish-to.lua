-- Publishes with `command`, PUBLISH or SPUBLISH. If `command` is empty, publishes nothing. Returns how many clients of
-- this server listened, or nil if the user may not publish. A missing right to publish must not prevent a release.
local function publishTo(command, channel, message)
  if command == '' then
    return 0
  end
  local listeners = redis.pcall(command, channel, message)
  return type(listeners) == 'number' and listeners or nil
end
