--[[
  Releases one side of read/write locks, each for its owner.

  What a side says runs for each lock. `lock` and `owner` are this lock and its owner, and KEYS[2 * i] is the owner's lease
  as a reader. It returns the answer, and notes the lock in `changed` and `lines` if its line may have to be served.

  KEYS[2i - 1]  lock
  KEYS[2i]      lease of this owner as a reader

  ARGV[1]       PUBLISH or SPUBLISH; empty: notify nobody
  ARGV[2]       clock of the fencing tokens of these locks
  ARGV[2 + i]   owner

  Returns an answer for each: how many clients listened, NOT_PUBLISHED (-2), NOT_SERVED (-3) or less, { NOT_HELD (-1),
  server time in ms }, or { { error, types of the keys } }.
]]
-- @includes
local publish = ARGV[1]
-- Which locks' lines may have to be served, by the keys under which their places would be.
local changed, lines = {}, {}

local function release(i, first)
  local lock, owner = KEYS[first], ARGV[2 + i]
  -- @kind
end

local answers = {}
for i = 1, #KEYS / 2 do
  answers[i] = answerOf(release, i, 2 * i - 1, 2)
end
-- Most locks have no line. One command finds that out for all of them, and what serves a line is not even defined.
local lineCount = publish ~= '' and lines[1] and redis.pcall('EXISTS', unpack(lines))
if not lineCount or lineCount == 0 then
  return answers
end

-- @include line/time-of-grant
-- @includes
local isAllowed = type(lineCount) == 'number'
for _, i in ipairs(changed) do
  -- The lock is released even if its line cannot be told.
  if isAllowed then
    pcall(tellLine, KEYS[2 * i - 1], publish, ARGV[2], 0)
  end
  answers[i] = servedOrNot(answers[i], isAllowed)
end
return answers
