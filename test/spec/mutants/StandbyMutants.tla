---------------------------- MODULE StandbyMutants ----------------------------
(* One-line changes of Standby, each of which breaks a promise. *)
EXTENDS Standby

NotLonger(end) == end
FromTheAnswer(a) == now
OfAnyLease(a) == TRUE
OldBeat == beat
AnyTime == Silence >= 1
AtAnyTime(m) == TRUE
ALittleLater(m) == now <= m.sent + Timeout + 1
AtOnce == TRUE
AlsoTheRest == phase \in {"held", "withdrawn", "rest"}
AlsoFree(m) == Holder \in {m.owner, Nobody}
OfAnybody(m) == Holder # Nobody
==============================================================================
