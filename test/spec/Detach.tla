-------------------------------- MODULE Detach --------------------------------
(***************************************************************************)
(* One lock that is detached by its first holder and adopted by a ticket.  *)
(*                                                                         *)
(* docs/detach-and-adopt.md: "`detach({ for })` ends the lease without     *)
(* freeing the lock."  "`adopt(ticket)` works once."  "The lock gets a new *)
(* owner and a new fencing token when it is detached, and again when it is *)
(* adopted.  So a renewal or a release of the first process that arrives   *)
(* late has no effect, and its late writes are rejected."                  *)
(* lib/backends/redis/scripts/lock/adopt-2.lua: "If it is sent twice, it   *)
(* transfers the lock once and does not shorten the next owner's lease."   *)
(*                                                                         *)
(* Requests are executed at any time after they were sent, or never, and   *)
(* may be executed twice.  Deadlines, clocks that disagree, and locks that *)
(* are kept for nobody are the subject of Lease.                           *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS First,      \* the owner that detaches
          Ticket,     \* the owner that the ticket stands for
          Adopters,   \* the owners of those that have the same ticket
          Stranger,   \* somebody who takes the lock when it is free
          Nobody,
          AdoptTime,  \* the lease of an adoption
          LeaseTime,  \* that of a renewal, which `extend()` may have made longer
          TicketTime, \* `for`
          MaxTime, MaxSent, MaxCopies

VARIABLES now,
          lock,      \* what the server keeps: an owner, and until when
          last,      \* the last token
          requests, answers,
          phase,     \* of each owner: "new", "asking", "held", "given" (a ticket), or "left"
          until,     \* of each owner: the end of its lease, as its process knows it
          given,     \* of each owner: its token, as its process knows it
          adopted,   \* the adopters to which the server has transferred the lock
          sent, copies

vars == <<now, lock, last, requests, answers, phase, until, given, adopted, sent, copies>>

Owners == {First, Ticket, Stranger} \cup Adopters
Holder == IF lock.until > now THEN lock.owner ELSE Nobody
Believes(o) == phase[o] = "held" /\ now < until[o]
Max(a, b) == IF a > b THEN a ELSE b

Init == /\ now = 0 /\ lock = [owner |-> First, until |-> LeaseTime] /\ last = 1
        /\ requests = {} /\ answers = {} /\ adopted = {} /\ sent = 0 /\ copies = 0
        /\ phase = [o \in Owners |-> IF o = First THEN "held" ELSE "new"]
        /\ until = [o \in Owners |-> IF o = First THEN LeaseTime ELSE 0]
        /\ given = [o \in Owners |-> IF o = First THEN 1 ELSE 0]

Tick == now < MaxTime /\ now' = now + 1 /\ UNCHANGED <<lock, last, requests, answers, phase, until, given, adopted, sent, copies>>

------------------------------------------------------------------------------
(* Clients *)

Send(kind, o) == /\ sent < MaxSent /\ sent' = sent + 1
                 /\ requests' = requests \cup {[kind |-> kind, owner |-> o, at |-> now]}
                 /\ UNCHANGED <<now, lock, last, answers, until, given, adopted, copies>>
Becomes(o, next) == phase' = [phase EXCEPT ![o] = next]

Renew(o) == Believes(o) /\ Send("renew", o) /\ UNCHANGED phase

(* The lease ends here and now.  While there is no answer, the same is asked again until the lease would have ended. *)
AskToDetach == \/ Believes(First) /\ Send("detach", Ticket) /\ Becomes(First, "asking")
               \/ phase[First] = "asking" /\ now < until[First] /\ Send("detach", Ticket) /\ UNCHANGED phase

Adopt(o) == phase[Ticket] = "given" /\ phase[o] \in {"new", "asking"} /\ Send("adopt", o) /\ Becomes(o, "asking")

(* An adopter has done its work, or stops asking; the first process stops asking, and both owners are given up. *)
Leave(o) == /\ phase[o] \in {"asking", "held"}
            /\ phase' = [p \in Owners |-> IF p = o \/ (o = First /\ p = Ticket) THEN "left" ELSE phase[p]]
            /\ UNCHANGED <<now, lock, last, requests, answers, until, given, adopted, sent, copies>>

(* In the background, for whatever late copies of requests may have done. *)
Release(o) == phase[o] = "left" /\ Send("release", o) /\ UNCHANGED phase

Take == /\ Holder = Nobody /\ phase[Stranger] = "new" /\ Becomes(Stranger, "held")
        /\ lock' = [owner |-> Stranger, until |-> now + LeaseTime] /\ until' = [until EXCEPT ![Stranger] = now + LeaseTime]
        /\ last' = last + 1 /\ given' = [given EXCEPT ![Stranger] = last + 1]
        /\ UNCHANGED <<now, requests, answers, adopted, sent, copies>>

------------------------------------------------------------------------------
(* Server *)

(* The ticket's owner is another one than that of the process which has detached the lock. *)
IsOwner(o) == Holder = o
MayDetach == Holder \in {First, Ticket}
MayAdopt(o) == Holder \in {Ticket, o}

Succeeds(m) == CASE m.kind = "detach" -> MayDetach
                 [] m.kind = "adopt" -> MayAdopt(m.owner)
                 [] OTHER -> IsOwner(m.owner)

LeaseOf(m) == CASE m.kind = "detach" -> TicketTime [] m.kind = "adopt" -> AdoptTime [] OTHER -> LeaseTime
(* The copy of an adoption. *)
Repeated(end) == Max(end, lock.until)
EndOf(m) == IF m.kind = "adopt" /\ Holder = m.owner THEN Repeated(now + LeaseOf(m)) ELSE now + LeaseOf(m)
DrawsToken(kind) == kind \in {"detach", "adopt"}

(* A request that is refused changes nothing, and nobody waits for its answer, nor for that of a release. *)
Execute(m) ==
  LET token == IF DrawsToken(m.kind) THEN last + 1 ELSE last IN
  /\ Succeeds(m)
  /\ \/ requests' = requests \ {m} /\ UNCHANGED copies
     \/ copies < MaxCopies /\ copies' = copies + 1 /\ UNCHANGED requests
  /\ last' = token /\ answers' = IF m.kind = "release" THEN answers ELSE answers \cup {[request |-> m, token |-> token]}
  /\ lock' = CASE m.kind = "release" -> [owner |-> Nobody, until |-> 0]
               [] m.kind = "renew" -> [lock EXCEPT !.until = EndOf(m)]
               [] OTHER -> [owner |-> m.owner, until |-> EndOf(m)]
  /\ adopted' = IF m.kind = "adopt" THEN adopted \cup {m.owner} ELSE adopted
  /\ UNCHANGED <<now, phase, until, given, sent>>

------------------------------------------------------------------------------
(* Client: read an answer *)

(* The moment before the request was sent. *)
CountsFrom(m) == m.at
IsExpected(m) == CASE m.kind = "detach" -> phase[First] = "asking"
                   [] m.kind = "adopt" -> phase[m.owner] = "asking"
                   [] m.kind = "renew" -> phase[m.owner] = "held"

Read(a) ==
  LET m == a.request o == m.owner end == CountsFrom(m) + LeaseOf(m) IN
  /\ IsExpected(m) /\ answers' = answers \ {a}
  /\ until' = [until EXCEPT ![o] = IF m.kind = "renew" THEN Max(@, end) ELSE end]
  /\ given' = IF m.kind = "renew" THEN given ELSE [given EXCEPT ![o] = a.token]
  /\ phase' = CASE m.kind = "detach" -> [phase EXCEPT ![First] = "left", ![Ticket] = "given"]
                [] m.kind = "adopt" -> [phase EXCEPT ![o] = "held"]
                [] m.kind = "renew" -> phase
  /\ UNCHANGED <<now, lock, last, requests, adopted, sent, copies>>

Next == \/ Tick \/ AskToDetach \/ Take
        \/ \E o \in {First} \cup Adopters : Renew(o) \/ Leave(o)
        \/ \E o \in Owners : Release(o)
        \/ \E o \in Adopters : Adopt(o)
        \/ \E m \in requests : Execute(m)
        \/ \E a \in answers : Read(a)
Spec == Init /\ [][Next]_vars

(* Of two adopters, it does not matter which. *)
Symmetric == Permutations(Adopters)

------------------------------------------------------------------------------
(* Promises *)

(* The server keeps the lock for whoever believes that it holds it, so that no two do. *)
BeliefIsCovered == \A o \in Owners : Believes(o) => Holder = o
(* A ticket keeps the lock for its whole time, until it is used. *)
TicketIsCovered == phase[Ticket] = "given" /\ now < until[Ticket] /\ adopted = {} => Holder = Ticket
AdoptedOnce == Cardinality(adopted) <= 1
(* What the first process or the holder of the ticket writes late is rejected. *)
EachIsFenced == /\ phase[Ticket] = "given" => given[Ticket] > given[First]
                /\ \A o \in Adopters : phase[o] = "held" => given[o] > given[Ticket]
==============================================================================
