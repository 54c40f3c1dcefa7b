--[[
  Returns when the results of a single flight were last forgotten, as a reading of the clock of fencing tokens. 0: not known.

  KEYS[1]  forgotten: see forget-result-4.lua
]]
-- @include flight/forgotten-note
local _, last = forgottenNote(KEYS[1])
return string.format('%.0f', last or 0)
