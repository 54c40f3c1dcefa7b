-- A record of forgotten results is kept this much longer than the lock of the flight, in ms. Callers that joined the
-- run read the record until the run has ended.
local FORGOTTEN_LONGER = 10000
