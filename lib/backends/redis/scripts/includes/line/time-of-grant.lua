-- What tokens.lua needs, for scripts that take tokens only for a grant to the first place of a line.
local micros, seen
