-- What a release answers when it does not answer how many clients listened.
-- NOT_HELD: the owner did not hold the lock. NOBODY_TOLD: the lock was released, and nobody had to be told or could be told.
local NOT_HELD, NOBODY_TOLD = -1, -2
