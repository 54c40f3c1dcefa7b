-- Creates a semaphore with `permits`, unless this is empty. Returns how many it has, and whether it is still missing.
local function setUp(semaphore, note, kind, permits)
  if permits == '' then
    return 0, true
  end
  redis.call('SET', semaphore, permits)
  noteCounter(note, kind, permits)
  return tonumber(permits), false
end
