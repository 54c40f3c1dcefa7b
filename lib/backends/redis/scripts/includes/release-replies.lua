-- The replies of a release other than the number of clients that listened.
-- NOT_HELD: the owner did not hold the lock. NOBODY_TOLD: the lock was released, and no message was needed or possible.
local NOT_HELD, NOBODY_TOLD = -1, -2
