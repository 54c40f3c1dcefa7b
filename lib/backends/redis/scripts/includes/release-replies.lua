-- The replies of a release other than the number of clients that listened.
-- NOT_HELD: the owner did not hold the lock. NOT_PUBLISHED: the lock was released, but no message was needed or
-- possible.
local NOT_HELD, NOT_PUBLISHED = -1, -2
