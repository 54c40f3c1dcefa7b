-------------------------------- MODULE Lease --------------------------------
(***************************************************************************)
(* What the owners of one lock do, and what is promised to them.  The      *)
(* server is in LeaseServer.                                               *)
(*                                                                         *)
(* docs/internals/decisions/judging-a-lease.md: "A lease counts from the   *)
(* moment *before* the command was sent, less a margin for drift." "A      *)
(* lease can be lost here a moment before Redis ends it, never after it."  *)
(* docs/internals/decisions/requests-expire.md: "Whatever takes something  *)
(* carries the server time after which the script must not execute it."    *)
(* docs/internals/decisions/owner-ids.md: "Every key of every attempt      *)
(* gets its own id."                                                       *)
(***************************************************************************)
EXTENDS LeaseServer

------------------------------------------------------------------------------
(* Client: take the lock *)

Request(kind, o, from, lease, deadline) ==
  [kind |-> kind, owner |-> o, from |-> from, lease |-> lease, sent |-> Clock(o), deadline |-> deadline, copy |-> 1]

(* The deadline is fixed when the request is first sent.  The estimate of the server's clock never refuses falsely. *)
InTime(o, deadline) == now + TimeoutOf(o) <= deadline /\ deadline <= now + TimeoutOf(o) + Error

CanAsk(o) == own[o].phase = "new"

Ask(o, lease, deadline) ==
  [own[o] EXCEPT !.phase = "asked", !.sent = Clock(o), !.lease = lease, !.deadline = deadline, !.resent = FALSE]

Acquire(o, lease, deadline) ==
  /\ CanAsk(o) /\ InTime(o, deadline)
  /\ requests' = requests \cup {Request("acquire", o, o, lease, deadline)}
  /\ own' = [own EXCEPT ![o] = Ask(o, lease, deadline)]
  /\ UNCHANGED <<now, clock, lock, answers>>

(* Hand-off by one script: the old owner is out of use from now on. *)
Transfer(from, o, lease, deadline) ==
  /\ CanAsk(o) /\ own[from].phase = "held" /\ ClientOf(from) = ClientOf(o) /\ InTime(o, deadline)
  /\ requests' = requests \cup {Request("transfer", o, from, lease, deadline)}
  /\ own' = [own EXCEPT ![o] = Ask(o, lease, deadline), ![from].phase = "left", ![from].leftAt = now]
  /\ UNCHANGED <<now, clock, lock, answers>>

(* The connection broke, and the client library sends the same request again, with the deadline that it had.  Its caller *)
(* may have given it up. *)
DeadlineOfCopy(m) == m.deadline

Resend(m) ==
  /\ m.copy = 1 /\ \A other \in requests : other.copy = 2 => other.owner # m.owner \/ other.sent # m.sent \/ other.kind # m.kind
  /\ m.kind \in Taking => own[m.owner].phase \in {"asked", "left"} /\ own[m.owner].sent = m.sent /\ own[m.owner].deadline = m.deadline
  /\ requests' = requests \cup {[m EXCEPT !.copy = 2, !.deadline = DeadlineOfCopy(m)]}
  /\ own' = IF m.kind \in Taking THEN [own EXCEPT ![m.owner].resent = TRUE] ELSE own
  /\ UNCHANGED <<now, clock, lock, answers>>

Renew(o, lease) ==
  /\ IsCurrent(o) /\ Request("renew", o, o, lease, 0) \notin requests
  /\ requests' = requests \cup {Request("renew", o, o, lease, 0)}
  /\ UNCHANGED <<now, clock, lock, answers, own>>

------------------------------------------------------------------------------
(* Client: leave *)

Leave(o, deadline) == [own[o] EXCEPT !.phase = "left", !.leftAt = now, !.deadline = deadline]

(* The body has ended, or the process gives back what it got for nobody. *)
Release(o) ==
  /\ own[o].phase = "held"
  /\ own' = [own EXCEPT ![o] = Leave(o, own[o].deadline)]
  /\ UNCHANGED <<now, clock, lock, requests, answers>>

(* Past its deadline a lease is lost, even if the server cannot be asked. *)
Lapse(o) == Clock(o) >= own[o].until /\ Release(o)

(* The caller stops waiting for an answer: nobody knows whether the request was, or will be, executed. *)
GiveUp(o) ==
  /\ own[o].phase = "asked"
  /\ own' = [own EXCEPT ![o] = Leave(o, own[o].deadline)]
  /\ UNCHANGED <<now, clock, lock, requests, answers>>

(* The request was certainly not sent. *)
Refused(m) ==
  /\ m \in requests /\ m.copy = 1
  /\ requests' = requests \ {m}
  /\ own' = IF m.kind \in Taking /\ own[m.owner].phase = "asked" /\ own[m.owner].sent = m.sent
            THEN [own EXCEPT ![m.owner].phase = IF own[m.owner].resent THEN "left" ELSE "new",
                             ![m.owner].leftAt = now]
            ELSE own
  /\ UNCHANGED <<now, clock, lock, answers>>

(* Releases have no time limit, and are repeated. *)
SendRelease(o) ==
  /\ own[o].phase = "left" /\ ~own[o].settled
  /\ Request("release", o, o, 0, 0) \notin requests
  /\ requests' = requests \cup {Request("release", o, o, 0, 0)}
  /\ UNCHANGED <<now, clock, lock, answers, own>>

Crash(c) ==
  /\ own' = [o \in DOMAIN own |-> IF ClientOf(o) # c THEN own[o]
                              ELSE [own[o] EXCEPT !.phase = "dead", !.leftAt = IF WillUse(o) THEN now ELSE @]]
  /\ UNCHANGED <<now, clock, lock, requests, answers>>

------------------------------------------------------------------------------
(* Client: read an answer *)

IsExpected(m) == own[m.owner].phase = "asked" /\ own[m.owner].sent = m.sent

(* The moment before the request was sent. *)
CountsFrom(m) == m.sent

(* Until when copies of a request may be executed; 0: there is none. *)
Doubt(o) == IF own[o].resent THEN own[o].deadline ELSE 0

ReadTaken(a) ==
  LET m == a.request o == m.owner until == CountsFrom(m) + Validity(m.lease) IN
  IF ~IsExpected(m) THEN own[o]
  ELSE IF a.ok /\ Clock(o) < until
       THEN [own[o] EXCEPT !.phase = "held", !.until = until, !.deadline = Doubt(o)]
  ELSE IF a.ok \/ own[o].resent \/ m.kind = "transfer" THEN Leave(o, Doubt(o))
  ELSE [own[o] EXCEPT !.phase = "new", !.leftAt = now]

ReadRenewed(a) ==
  LET m == a.request o == m.owner IN
  IF own[o].phase # "held" THEN own[o]
  ELSE IF a.ok THEN [own[o] EXCEPT !.until = Max(@, CountsFrom(m) + Validity(m.lease))]
  ELSE Leave(o, own[o].deadline)

(* The first "not there" proves nothing while the request may still arrive. *)
IsSettledBy(a) == own[a.request.owner].deadline = 0 \/ (~a.ok /\ a.at > own[a.request.owner].deadline)

ReadReleased(a) ==
  LET o == a.request.owner IN
  [own[o] EXCEPT !.settled = @ \/ IsSettledBy(a)]

Read(a) ==
  LET o == a.request.owner IN
  /\ a \in answers /\ own[o].phase # "dead"
  /\ answers' = answers \ {a}
  /\ own' = [own EXCEPT ![o] = CASE a.request.kind \in Taking -> ReadTaken(a)
                                 [] a.request.kind = "renew" -> ReadRenewed(a)
                                 [] a.request.kind = "release" -> ReadReleased(a)]
  /\ UNCHANGED <<now, clock, lock, requests>>

------------------------------------------------------------------------------
(* Promises *)

(* Two that believe by their own clock never overlap. *)
OneBelieves == \A o, p \in DOMAIN own : Believes(o) /\ Believes(p) => o = p

(* More than that: the server keeps the lock for whoever believes in it. *)
BeliefIsCovered == \A o \in DOMAIN own : Believes(o) => Holder = o

(* A lock that nobody will use is free within a bounded time, whatever arrives late. *)
FreeInTime == \A o \in DOMAIN own : Holder = o /\ ~WillUse(o) => lock.until <= own[o].leftAt + TimeoutOf(o) + Error + own[o].lease

(* A background release stops when nothing can be left, and not before. *)
NothingIsLeft == \A o \in DOMAIN own : own[o].settled =>
  /\ Holder # o
  /\ \A m \in requests : m.owner = o /\ m.kind \in Taking => IsLate(m)
==============================================================================
