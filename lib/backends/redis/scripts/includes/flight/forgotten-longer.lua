-- How much longer than the lock of a flight the note lasts that its result was forgotten, in ms: callers that joined
-- the run ask for it until the run has ended.
local FORGOTTEN_LONGER = 10000
