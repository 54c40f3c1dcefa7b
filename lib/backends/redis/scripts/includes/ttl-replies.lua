-- The replies of PTTL for a key that does not exist, and for a key without a lease.
local NO_KEY, NO_LEASE = -2, -1
