-- Tells a channel, by PUBLISH or SPUBLISH; nobody when `publish` is empty. Gives how many clients of this server listened.
-- A user who may not publish has freed the lock all the same: then it is −2.
local function tell(publish, channel, message)
  if publish == '' then
    return 0
  end
  local listeners = redis.pcall(publish, channel, message)
  return type(listeners) == 'number' and listeners or -2
end
