-- Publishes by `command`, PUBLISH or SPUBLISH; to nobody when `command` is empty. Returns how many clients of this
-- server listened; nil when the user may not publish, which must not keep a lock from being released.
local function publishTo(command, channel, message)
  if command == '' then
    return 0
  end
  local listeners = redis.pcall(command, channel, message)
  return type(listeners) == 'number' and listeners or nil
end
