-- The maximum number of holds that scripts count for one reader. A Java reader has more only if it nests more calls
-- of lock().
local MOST_HOLDS = 1000

-- How often a reader holds the lock, according to the value of its field. The value may be anything, so scripts limit
-- their loops.
local function holdsIn(value)
  return math.min(tonumber(value) or 0, MOST_HOLDS)
end
