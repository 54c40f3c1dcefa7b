-- A note of forgotten results lasts this much longer than the lock of the flight, in ms. Callers that joined the run
-- read the note until the run has ended.
local FORGOTTEN_LONGER = 10000
