-- Notifies the waiters of a latch. Redisson puts braces around every name in this channel, even if the name has braces.
local function publishToLatch(publish, latch, message)
  publishTo(publish, 'redisson_countdownlatch__channel__{' .. latch .. '}', message)
end
