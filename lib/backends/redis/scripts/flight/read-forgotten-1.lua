--[[
  Returns when the results of a single flight were last forgotten: a reading of the clock of fencing tokens; 0 when not known.

  KEYS[1]  forgotten
]]
return redis.call('GET', KEYS[1]) or 0
