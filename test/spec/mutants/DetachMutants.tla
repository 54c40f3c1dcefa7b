----------------------------- MODULE DetachMutants ----------------------------
(* One-line changes of Detach, each of which breaks a promise. *)
EXTENDS Detach

FromTheAnswer(m) == now
NotLonger(end) == end
FromAnybody(o) == Holder # Nobody
AlsoFree(o) == Holder \in {Ticket, o, Nobody}
AlsoOfAFreeLock == Holder \in {First, Ticket, Nobody}
FirstOwnsTheTicket(o) == Holder = o \/ (o = First /\ Holder = Ticket)
OnlyAtDetach(kind) == kind = "detach"
OnlyAtAdopt(kind) == kind = "adopt"
==============================================================================
