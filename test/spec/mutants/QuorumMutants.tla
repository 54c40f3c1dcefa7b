----------------------------- MODULE QuorumMutants -----------------------------
(* One-line changes of Quorum, each of which breaks a promise. *)
EXTENDS Quorum

Half(nodes) == 2 * Cardinality(nodes) >= Cardinality(Nodes) - 1
TheAnswer(o) == now
NotRaised(n, o) == clock[n]
Never(o, time) == FALSE
NothingIsExcepted == FALSE
Always == TRUE
Anybody(o) == TRUE
WhoeverHolds(n, o) == Renews(o) \/ Holder(n) = o \/ Holder(n) = Nobody
==============================================================================
