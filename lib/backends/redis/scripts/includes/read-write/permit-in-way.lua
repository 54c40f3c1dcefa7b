-- Why a reader or writer waits for a key that is no hash. Fails unless it is a lock that n may hold.
local function permitInWay(lock)
  local _, permit = lockFields(lock)
  return { permit[1], permit[2], 'reentrant' }
end
