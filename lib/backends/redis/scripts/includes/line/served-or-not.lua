-- The answer to a release for which `listeners` clients listened: `isAllowed` is whether the user may read the line.
local function servedOrNot(listeners, isAllowed)
  return isAllowed and mayPublishInLine and listeners or NOT_SERVED - math.max(0, listeners)
end
