-- A Java waiter that gets a fair lock subtracts its waiting time (300 s for lock()) from all timeouts. To make up for
-- this, the timeout of our waiters is that much later for each Java waiter before them. Only Java reads these timeouts.
local JAVA_WAIT = 300000
