------------------------------ MODULE LineMutants ------------------------------
(* One-line changes of Line, each of which breaks a promise. *)
EXTENDS Line

(* What a grant is *)
OfTheMessage(o, m) == m.lease
ToldAlready(s) == s.told
OfThisRequest(m) == State([owner |-> m.owner, until |-> now + m.lease], Without(line, m.owner), {})
AClaim(place) == Claim
Always(o) == TRUE

(* Who is granted it *)
IsThere(place) == IsCounted(place.owner)
OwesNothing(place) == ~OwesRefresh(place)
NobodyIsTold(places) == {}
TheFirst(places) == {FirstTold(places)}

HasTime(place) == [place EXCEPT !.lapses = Max(@, now + (WaiterTimeout \div 3))]

Frees(m) == IF IsOwner(m.owner) THEN State(Free(Untold), line, {}) ELSE As(line)
KeepsOnly(m) == As(Renewed(Living(line), m))
LeavesOnly(m) == As(Without(line, m.owner))
AllOf(places, o) == places
Never(m, time) == FALSE
Anybody(o) == TRUE
AtTheEnd(places, m) == Appended(Without(places, m.owner), m)
Everybody(places, m) == [i \in 1..Len(places) |-> Lasting(places[i], m)]
InFront(places, m) == <<Place(m)>> \o places
IsFree(m) == Holder = Nobody
ToAnybody == lock.owner = Nobody

(* When it is believed *)
FromTheMessage(o, m) == now
ByTheClock(o, m) == Moment(o, m) + m.after
OfTheLast(o, m) ==
  IF o.moments = {} THEN m.sent ELSE CHOOSE n \in {pair[2] : pair \in o.moments} : \A pair \in o.moments : pair[2] <= n
OfTheSecondSending(o) == [o EXCEPT !.moments = {pair \in @ : pair[1] # o.asked} \cup {<<o.asked, now>>}]
AnyLease(o, m) == TRUE
AtLeast(o, m) == o.want = "grant" /\ IsWritten(o, m)
OfAnyPlace(o, m) == TRUE
WithALease(m) == TRUE
AnyTime(begin, lease) == begin + lease > now
OfAnyAttempt(m, p) == m.owner[1] = p /\ own[p].phase # "idle"
AsItIs(o) == <<o, "">>
Nothing(m) == ""
NotExcepted(p) == FALSE
==============================================================================
