-- The replies of a release other than the number of clients that listened.
-- NOT_HELD: the owner did not hold the lock. NOT_PUBLISHED: the lock was released, but no message was needed or
-- possible.
-- NOT_SERVED, less the number of clients that listened: the lock was released, but the user may not serve its line.
local NOT_HELD, NOT_PUBLISHED, NOT_SERVED = -1, -2, -3
