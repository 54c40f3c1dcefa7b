-- A Java waiter that gets a fair lock subtracts its own waiting time from everybody's timeout: 300 s for lock(). So a
-- waiter of ours gets that much on top for each Java waiter before it. Only Java reads these timeouts of our waiters.
local JAVA_WAIT = 300000
