-- A place that wants a lock which n may hold notes n in the time at which it lapses: as a fraction, in 2048ths of a ms.
local PERMIT = 1 / 2048
