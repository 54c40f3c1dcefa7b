-------------------------- MODULE SingleFlightMutants --------------------------
(* One-line changes of SingleFlight, each of which breaks a promise. *)
EXTENDS SingleFlight

OneAfterTheOther == {{"store"}, {"release"}}
OnlyIfKept(c) == Keeps(c)
No == FALSE
Always(c) == TRUE
Ended(begin) == begin < result.before
Kept(c) == result.isKept
Somebody(c) == lock # Nobody
UntilItEnds(c) == reading + 1
WhenStored(c) == reading + 1
Never(c) == FALSE
==============================================================================
