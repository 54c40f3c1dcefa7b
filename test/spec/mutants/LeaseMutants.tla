----------------------------- MODULE LeaseMutants -----------------------------
(* One-line changes of Lease, each of which breaks a promise. *)
EXTENDS LeaseModel

Never(m) == FALSE
OnlyTransfers(m) == m.kind = "transfer" /\ now > m.deadline
FromTheAnswer(m) == Clock(m.owner)
WholeLease(lease) == lease
AlsoAfterARelease(o) == own[o].phase \in {"new", "left"}
NewDeadline(m) == now + Timeout + Error
ANotThere(a) == ~a.ok
ARelease(a) == a.ok
NobodyIsTold(o) == own
==============================================================================
