------------------------------ MODULE LineMutants ------------------------------
(* One-line changes of Line, each of which breaks a promise. *)
EXTENDS Line

Frees(o) == IF Holder = o THEN State(Released, line, {}) ELSE As(line)
KeepsOnly(o) == As(Renewed(line, o))
LeavesOnly(o) == As(Without(line, o))
IsAPlace(place) == TRUE
AllOf(places) == places
AtTheEnd(places, o) == Appended(Without(places, o), o)
Everybody(places, o) == [i \in 1..Len(places) |-> Lasting(places[i])]
InFront(places, o) == <<Place(o)>> \o places
Anybody(o) == TRUE
IfFree(m) == Holder = Nobody
Never(m, time) == FALSE
FromTheAnswer(m) == now
AtTheAnswer(o) == [o EXCEPT !.asked = now]
OfAnyRequest(p, m) == TRUE
FromTheGrant(p, m) == now + Claim
OfAnyAttempt(m, p) == m.owner[1] = p
Nothing == ""
==============================================================================
