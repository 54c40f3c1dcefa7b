-- Tells the waiters of a latch. Redisson's channel has braces around every name, also around one that has braces.
local function publishToLatch(publish, latch, message)
  publishTo(publish, 'redisson_countdownlatch__channel__{' .. latch .. '}', message)
end
