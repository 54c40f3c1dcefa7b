-- Makes or keeps a place in the line. Returns false if the server's memory is full.
local function keepPlace(places, lapses, owner, position, lapse, waiterTimeout)
  return addUnlessFull(places, position, owner, waiterTimeout)
    and addUnlessFull(lapses, lapse, owner, waiterTimeout)
end
