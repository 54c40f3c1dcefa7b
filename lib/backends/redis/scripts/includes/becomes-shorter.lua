-- A lease that is shorter by less than this needs no message, in ms. Before 7.2, Redis reads its clock again within a
-- script, so a lease that was measured twice seems to have become shorter by a few ms.
local NEGLIGIBLE = 10

-- Whether a lease is so much shorter than the former one that waiters have to be woken. They know only the former one,
-- and would sleep until it ended.
local function becomesShorter(former, lease)
  return former > lease + NEGLIGIBLE
end
