----------------------------- MODULE PermitsMutants ----------------------------
(* One-line changes of Permits, each of which breaks a promise. *)
EXTENDS Permits

TheAnswer(sent) == now + 1
OneMore(n, zset) == Cardinality({o \in Owners : zset[o] > now}) <= n
FirstEnd(zset) == LET all == {zset[o] : o \in Owners} \ {0} IN IF all = {} THEN 0 ELSE CHOOSE end \in all : \A other \in all : other >= end
Whenever(o) == phase[o] # "new"
Ignored(o, places) == FALSE
ForTheLargest(o, zset) == HasRoom(CHOOSE n \in Limits : \A m \in Limits : m <= n, zset)
OnlyTheFirst(places, zset) == IF places # <<>> /\ RoomFor(Head(places).owner, zset) THEN {1} ELSE {}
ForEver == MaxTime + WaiterTimeout + Timeout + 1
Anybody(o) == TRUE
==============================================================================
