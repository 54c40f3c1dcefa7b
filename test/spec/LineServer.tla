------------------------------ MODULE LineServer ------------------------------
(***************************************************************************)
(* What Line is about: one lock, the line of those that wait for it, and   *)
(* what the server does with a request.                                    *)
(*                                                                         *)
(* lib/backends/line-backend.ts: "A release grants the lock to the first   *)
(* place, for CLAIM milliseconds, and tells its client. So do              *)
(* refreshWaiters and an entering acquisition if they find the lock free,  *)
(* because whoever was granted it may have died, and removeWaiter of a     *)
(* place that was granted the lock."                                       *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS Processes, Nobody, Claim, LeaseTime, WaiterTimeout,
          Timeout,    \* for how long a request that takes the lock may be executed
          MaxTime, MaxFaults

VARIABLES now,
          lock,       \* an owner, and until when
          line,       \* the places, the first in front: see Place
          arrived,    \* the owners of these places, as they came
          net,        \* messages on their way, to the server or from it
          own,        \* what each process knows
          stalled,    \* processes that do nothing, although their clocks go on
          died,       \* when a process ended without a word; MaxTime + 1: it lives
          idle,       \* for how long nobody has used the lock although a process waits for it
          faults,     \* how often something has gone wrong
          overtaken   \* somebody got the lock while a place that was there before is still in the line

Holder == IF lock.until > now THEN lock.owner ELSE Nobody
Released == [owner |-> Nobody, until |-> 0]
Ended == [owner |-> Nobody, until |-> -1]

(* `at`: the server's time.  A grant has what identifies the request that its place is about, instead of `sent`, and how  *)
(* long before the grant the server executed that, instead of `at`.                                                       *)
Message(kind, o, sent, at) == [kind |-> kind, owner |-> o, sent |-> sent, at |-> at, late |-> FALSE]
Requests == {"try", "enter", "refresh", "release", "leave"}
Taking == {"try", "enter"}
IsExpired(m, time) == time > m.sent + Timeout

------------------------------------------------------------------------------
(* Places *)

IsIn(o, places) == \E i \in 1..Len(places) : places[i].owner = o
Without(places, o) == SelectSeq(places, LAMBDA place : place.owner # o)
IsAlive(place) == place.lapses > now
Living(places) == SelectSeq(places, IsAlive)
(* An owner, when its place lapses, the moment of the last request to enter, as the process knows it, and the server's.  *)
Place(o) == [owner |-> o, lapses |-> now + WaiterTimeout, nonce |-> 0, since |-> 0]
Lasting(place) == [place EXCEPT !.lapses = now + WaiterTimeout]
Renewed(places, o) == [i \in 1..Len(places) |-> IF places[i].owner = o THEN Lasting(places[i]) ELSE places[i]]
Noted(places, m) == [i \in 1..Len(places) |->
                      IF places[i].owner = m.owner THEN [places[i] EXCEPT !.nonce = m.sent, !.since = now] ELSE places[i]]
Appended(places, o) == Append(places, Place(o))
Entered(places, o) == IF IsIn(o, places) THEN Renewed(places, o) ELSE Appended(places, o)

------------------------------------------------------------------------------
(* Requests *)

State(l, places, told) == [lock |-> l, line |-> places, told |-> told]
As(places) == State(lock, places, {})
Taken(o) == State([owner |-> o, until |-> now + LeaseTime], Without(line, o), {})

(* A lock that is free goes to the first place. *)
AfterGrant(places) == Tail(places)
Served(places) ==
  LET living == Living(places) first == Head(living) o == first.owner IN
  IF living = <<>> THEN State(Released, <<>>, {})
  ELSE State([owner |-> o, until |-> now + Claim], AfterGrant(living),
             {Message("granted", o, first.nonce, now - first.since)})

(* A process that tries once does not look into the line. *)
IsNext(o) == Living(line) = <<>> \/ Head(Living(line)).owner = o
MayTake(m) == Holder = m.owner \/ (Holder = Nobody /\ (m.kind = "try" \/ IsNext(m.owner)))

Enter(m) == LET s == IF Holder = Nobody THEN Served(line) ELSE As(line) IN [s EXCEPT !.line = Noted(Entered(@, m.owner), m)]
Refresh(o) == IF Holder = Nobody THEN Served(Renewed(line, o)) ELSE As(Renewed(line, o))
Release(o) == IF Holder = o THEN Served(line) ELSE As(line)
IsFirst(o) == IsIn(o, line) /\ Head(line).owner = o
Leave(o) == LET rest == Without(line, o) IN IF Holder = o \/ (Holder = Nobody /\ IsFirst(o)) THEN Served(rest) ELSE As(rest)

After(m) == CASE m.kind \in Taking /\ MayTake(m) -> Taken(m.owner)
              [] m.kind = "try" -> As(line)
              [] m.kind = "enter" -> Enter(m)
              [] m.kind = "refresh" -> Refresh(m.owner)
              [] m.kind = "release" -> Release(m.owner)
              [] m.kind = "leave" -> Leave(m.owner)

Answer(m) == CASE m.kind \in Taking /\ MayTake(m) -> {Message("taken", m.owner, m.sent, now)}
               [] m.kind = "try" -> {Message("tried", m.owner, m.sent, now)}
               [] m.kind = "enter" -> {Message("busy", m.owner, m.sent, now)}
               [] m.kind = "refresh" -> {Message(IF IsIn(m.owner, line) THEN "kept" ELSE "gone", m.owner, m.sent, now)}
               [] OTHER -> {}

(* Those who try once are excepted where a lease or a claim has ended. *)
IsAhead(o, places) ==
  \E i \in 1..Len(arrived) : IsIn(arrived[i], Living(places)) /\ \A j \in 1..i : arrived[j] # o
Overtakes(m, next) ==
  /\ next.lock # lock /\ next.lock.owner \notin {Holder, Nobody} /\ IsAhead(next.lock.owner, next.line)
  /\ ~(m.kind = "try" /\ lock # Released)
ArrivedIn(places, o) == LET kept == SelectSeq(arrived, LAMBDA other : IsIn(other, places)) IN
                        IF IsIn(o, places) /\ ~IsIn(o, line) THEN Append(kept, o) ELSE kept

Spend == faults < MaxFaults /\ faults' = faults + 1
Late(m) == [m EXCEPT !.late = TRUE]
(* Any message may arrive twice, the second time late. *)
Handled(m, sent) == \/ net' = (net \ {m}) \cup sent /\ UNCHANGED faults
                    \/ net' = (net \ {m}) \cup sent \cup {Late(m)} /\ Spend

Execute(m) ==
  LET next == After(m) IN
  /\ m.kind \in Requests
  /\ IF m.kind \in Taking /\ IsExpired(m, now)
     THEN net' = net \ {m} /\ UNCHANGED <<lock, line, arrived, overtaken, faults>>
     ELSE /\ lock' = next.lock /\ line' = next.line /\ arrived' = ArrivedIn(next.line, m.owner)
          /\ overtaken' = (overtaken \/ Overtakes(m, next))
          /\ Handled(m, {told \in next.told \cup Answer(m) : died[told.owner[1]] > MaxTime})
  /\ UNCHANGED <<now, own, stalled, died, idle>>
==============================================================================
