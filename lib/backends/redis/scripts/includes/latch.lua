-- @include publish
-- @include counter

-- Redisson's channel has braces around every name.
local function tellLatch(publish, latch, message)
  tell(publish, 'redisson_countdownlatch__channel__{' .. latch .. '}', message)
end
