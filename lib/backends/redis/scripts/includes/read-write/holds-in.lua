-- A reader of Java's that holds a lock more often would have to lock it so often in each other's scope.
local MOST_HOLDS = 1000

-- How often a reader holds the lock, by the value of its field. It may be anything: no script counts up to a number
-- that it has read.
local function holdsIn(value)
  return math.min(tonumber(value) or 0, MOST_HOLDS)
end
