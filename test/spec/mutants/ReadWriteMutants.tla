---------------------------- MODULE ReadWriteMutants ---------------------------
(* One-line changes of ReadWrite and ReadWriteServer, each of which breaks a promise. *)
EXTENDS ReadWrite

TheAnswer(sent) == now + 1
TheLatestReader(o, lease) == now + lease
TheWriter(o, lease) == now + lease
OfOthers(o) == ~Writes(o) /\ (Mode = "write" \/ \E p \in Owners \ {o} : Reads(p))
OfWriters(o) == ~Writes(o) /\ Mode = "write"
UnderAnyWriter(o) == Mode = "write" \/ Reads(o) \/ ~IsBefore(o, line, TRUE)
PastTheLine(o) == Writes(o) \/ Mode # "write"
NobodyReadsOn(fields) == Freed
ForEver(o, writes) == [owner |-> o, writes |-> writes, lapses |-> MaxTime + WaiterTimeout + 1]
Anybody(o) == TRUE
InFront(places, o, writes) == IF IsIn(o, places) THEN [places EXCEPT ![At(o, places)] = Place(o, writes)] ELSE <<Place(o, writes)>> \o places
AnyPlace(o, places, reads) == \E i \in 1..Len(places) : places[i].lapses > now /\ (places[i].writes \/ ~reads)
==============================================================================
