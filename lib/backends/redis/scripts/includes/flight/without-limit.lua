-- Assumed, in ms, as the lease of a lock that has none, such as a semaphore under the name of a single flight.
local WITHOUT_LIMIT = 30000
