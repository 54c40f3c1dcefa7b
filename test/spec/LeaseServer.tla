----------------------------- MODULE LeaseServer -----------------------------
(***************************************************************************)
(* What Lease is about: one lock, its owners, the network between them,    *)
(* and what the server does with a request.                                *)
(*                                                                         *)
(* Requests and answers are delayed, lost and overtaken as the network     *)
(* likes: `requests` and `answers` are sets, and nobody has to take from   *)
(* them.  A paused process needs no action of its own: nobody has to act.  *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Clients, Owners,
          Error,     \* how much later a client may believe the server's clock to be; never earlier
          Nobody     \* who holds a free lock

CONSTANTS ClientOf(_),       \* the process of an owner id
          TimeoutOf(_),      \* its commandTimeout: how long its requests may be executed
          Validity(_)        \* what a client counts on, of a lease of this length

VARIABLES now,       \* the server's clock
          clock,     \* each client's own clock
          lock,      \* what the server keeps: an owner, and until when
          requests,  \* on their way to the server
          answers,   \* on their way back
          own        \* what the client of each owner id knows

vars == <<now, clock, lock, requests, answers, own>>

Taking == {"acquire", "transfer"}

(* `asked`: a request that takes the lock is not answered.  `held`: it was granted in time.  `left`: nobody will use this   *)
(* id any more; it is released in the background until `settled`.                                                           *)
NewOwner == [phase |-> "new", sent |-> 0, lease |-> 0, until |-> 0, deadline |-> 0, resent |-> FALSE, leftAt |-> 0,
             removed |-> FALSE, settled |-> FALSE]

Init == /\ now = 0 /\ clock = [c \in Clients |-> 0]
        /\ lock = [owner |-> Nobody, until |-> 0]
        /\ requests = {} /\ answers = {}
        /\ own = [o \in Owners |-> NewOwner]

Clock(o) == clock[ClientOf(o)]
Holder == IF lock.until > now THEN lock.owner ELSE Nobody
IsCurrent(o) == own[o].phase = "held" /\ Clock(o) < own[o].until
(* A forced release takes the lock from a holder that has not heard of it yet: the one exception. *)
Believes(o) == IsCurrent(o) /\ ~own[o].removed
WillUse(o) == own[o].phase \in {"asked", "held"}

Max(a, b) == IF a > b THEN a ELSE b

------------------------------------------------------------------------------
(* Server *)

IsLate(m) == m.kind \in Taking /\ now > m.deadline

Succeeds(m) ==
  CASE m.kind = "acquire" -> ~IsLate(m) /\ Holder \in {Nobody, m.owner}
    [] m.kind = "transfer" -> ~IsLate(m) /\ Holder \in {m.from, m.owner}
    [] m.kind \in {"renew", "release"} -> Holder = m.owner

Execute(m) ==
  /\ m \in requests
  /\ requests' = requests \ {m}
  /\ lock' = CASE ~Succeeds(m) -> lock
               [] m.kind = "release" -> [owner |-> Nobody, until |-> 0]
               \* What the owner has is not shortened by an acquisition, which may be late.
               [] m.kind = "acquire" -> [owner |-> m.owner, until |-> Max(now + m.lease, IF Holder = m.owner THEN lock.until ELSE 0)]
               [] OTHER -> [owner |-> m.owner, until |-> now + m.lease]
  /\ answers' = answers \cup {[request |-> m, ok |-> Succeeds(m), late |-> IsLate(m), at |-> now]}
  \* A late renewal is the last sign of its owner.
  /\ own' = IF Succeeds(m) /\ m.kind = "renew" /\ ~WillUse(m.owner) THEN [own EXCEPT ![m.owner].leftAt = now] ELSE own
  /\ UNCHANGED <<now, clock>>

Lose(m) == m \in requests /\ requests' = requests \ {m} /\ UNCHANGED <<now, clock, lock, answers, own>>
LoseAnswer(a) == a \in answers /\ answers' = answers \ {a} /\ UNCHANGED <<now, clock, lock, requests, own>>

Removed(o) == [own EXCEPT ![o].removed = TRUE]

(* A forced release, or a server that loses its data. *)
ForceRelease ==
  /\ Holder # Nobody
  /\ lock' = [owner |-> Nobody, until |-> 0]
  /\ own' = Removed(Holder)
  /\ UNCHANGED <<now, clock, requests, answers>>
==============================================================================
