------------------------------ MODULE LineServer ------------------------------
(***************************************************************************)
(* What Line is about: one lock, the line of those that wait for it, and   *)
(* what the server does with a request.                                    *)
(*                                                                         *)
(* A grant is an acquisition: whatever finds the lock free writes the      *)
(* first place that lives as its owner, with the lease that this place     *)
(* has asked for, and then tells its client.  If no place lives, or the    *)
(* first one wants to be told, the lock is left free, and the first two    *)
(* are told.                                                               *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS Processes, Nobody,
          Leases,        \* the lease times that callers want
          Wants,         \* what they want of the line: to be granted the lock, or to be told
          ShortestGrant, LongestGrant, \* the lease times with which a place may be granted the lock
          Claim,         \* for how long a release of an earlier version grants it
          WaiterTimeout, \* for how long a place is kept
          Interval,      \* how often a process refreshes its place
          Timeout,       \* for how long a request that takes the lock may be executed
          MaxTime, MaxFaults

VARIABLES now,
          ahead,      \* by how much the server's clock was set
          lock,       \* an owner, and until when; for a free lock, what is left to those who were told
          line,       \* the places, the first in front: see Place
          arrived,    \* the owners of these places, as they came
          net,        \* messages on their way, to the server or from it
          own,        \* what each process knows
          listening,  \* the processes that the server counts on their channels
          stalled,    \* processes that do nothing, although their clocks go on
          absent,     \* since when a process does nothing; MaxTime + 1: it works
          dead,
          idle,       \* for how long nobody has used the lock although a process waits for it
          faults,     \* how often something has gone wrong
          cost,       \* for how long the lock may be idle because of that
          overtaken   \* somebody got the lock while a place that was there before, and lives, is still in the line

Holder == IF lock.owner # Nobody /\ lock.until > now THEN lock.owner ELSE Nobody

(* A free lock.  Those who were told precede others until time passes. *)
Untold == -1
Over == 0
Precede == 1
Free(told) == [owner |-> Nobody, until |-> told]

(* `sent`: the moment before the request was sent for the first time, which is its nonce.  A grant has the nonce, the     *)
(* lease, and how much later it began than the request was executed, by the server's clock.  An answer "busy" says        *)
(* whether the lock is left to others who were told.                                                                      *)
Message(kind, o, sent) ==
  [kind |-> kind, owner |-> o, sent |-> sent, lease |-> 0, want |-> "", after |-> 0, left |-> FALSE, late |-> FALSE]
Requests == {"enter", "refresh", "release", "leave"}
IsExpired(m, time) == m.kind = "enter" /\ time > m.sent + Timeout

------------------------------------------------------------------------------
(* Places *)

IsIn(o, places) == \E i \in 1..Len(places) : places[i].owner = o
Without(places, o) == SelectSeq(places, LAMBDA place : place.owner # o)
(* Each part of it is there: its position, its time, and its terms. *)
IsWhole(place) == place.whole
IsAlive(place) == place.lapses > now /\ IsWhole(place)
Living(places) == SelectSeq(places, IsAlive)

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
(* A place is granted the lock with the lease that its caller wants, within bounds. *)
GrantLease(lease) == Min(LongestGrant, Max(ShortestGrant, lease))

IsCounted(o) == o[1] \in listening
Place(m) == [owner |-> m.owner, lapses |-> now + WaiterTimeout, nonce |-> m.sent, since |-> now + ahead,
             kept |-> WaiterTimeout, lease |-> GrantLease(m.lease), want |-> m.want, counted |-> IsCounted(m.owner), whole |-> TRUE]
(* A refresh has a nonce, too, and looks again whether somebody listens. *)
Lasting(place, m) == [place EXCEPT !.lapses = now + WaiterTimeout, !.nonce = m.sent, !.since = now + ahead,
                                   !.counted = IsCounted(place.owner)]
Renewed(places, m) == [i \in 1..Len(places) |-> IF places[i].owner = m.owner THEN Lasting(places[i], m) ELSE places[i]]
Noted(places, m) == [i \in 1..Len(places) |-> IF places[i].owner = m.owner THEN Place(m) ELSE places[i]]
Appended(places, m) == Append(places, Place(m))
Entered(places, m) == IF IsIn(m.owner, places) THEN Noted(places, m) ELSE Appended(places, m)

------------------------------------------------------------------------------
(* Whose turn it is *)

MayBeGranted(place) == place.want = "grant" /\ place.counted
(* It has more than a third of its time left. *)
OwesRefresh(place) == 3 * (place.lapses - now) <= place.kept
Lives(place) == IsCounted(place.owner) /\ ~OwesRefresh(place)
(* Whoever wants to be told owes nothing. *)
IsCandidate(place) == IF MayBeGranted(place) THEN Lives(place) ELSE IsCounted(place.owner)
Candidates(places) == SelectSeq(places, IsCandidate)

(* It stays in line, and has time to be refreshed if somebody listens. *)
PassedOver(place) == IF IsCounted(place.owner) THEN [place EXCEPT !.lapses = Max(@, now + (place.kept \div 3))] ELSE place
PassedUntil(places, o) ==
  LET isBefore(i) == \A j \in 1..i : places[j].owner # o
  IN [i \in 1..Len(places) |-> IF isBefore(i) /\ MayBeGranted(places[i]) THEN PassedOver(places[i]) ELSE places[i]]

------------------------------------------------------------------------------
(* Requests *)

State(l, places, told) == [lock |-> l, line |-> places, told |-> told]
As(places) == State(lock, places, {})
Taken(m) == LET until == now + m.lease IN
            State([owner |-> m.owner, until |-> IF Holder = m.owner THEN Max(lock.until, until) ELSE until], Without(line, m.owner), {})

WrittenLease(place) == place.lease
GrantTo(place) == {[Message("granted", place.owner, place.nonce) EXCEPT !.lease = place.lease, !.after = now + ahead - place.since]}
Granted(places, place) ==
  State([owner |-> place.owner, until |-> now + WrittenLease(place)], Without(PassedUntil(places, place.owner), place.owner), GrantTo(place))

IsReady(place) == ~OwesRefresh(place)
FirstTold(places) ==
  LET candidates == Candidates(places) ready == SelectSeq(places, IsReady) IN
  IF candidates # <<>> THEN candidates[1] ELSE IF ready # <<>> THEN ready[1] ELSE places[1]
(* The one behind it. *)
SecondTold(places) == {places[i] : i \in {n \in 2..Len(places) : places[n - 1] = FirstTold(places)}}
AreTold(places) == {FirstTold(places)} \cup SecondTold(places)
(* Those who were told precede others once, from when the lock became free. *)
Left(places, released) ==
  State(Free(IF released \/ lock.owner # Nobody \/ lock.until = Untold THEN Precede ELSE lock.until), PassedUntil(places, IF Candidates(places) = <<>> THEN <<>> ELSE FirstTold(places).owner),
        {Message("told", place.owner, 0) : place \in AreTold(places)})

(* `released`: the lock becomes free now. *)
Served(places, released) ==
  LET living == Living(places) candidates == Candidates(living) IN
  IF living = <<>> THEN State(Free(Untold), <<>>, {})
  ELSE IF candidates # <<>> /\ MayBeGranted(candidates[1]) THEN Granted(living, candidates[1])
  ELSE Left(living, released)
ServedIfFree(places) == IF Holder = Nobody THEN Served(places, FALSE) ELSE As(places)

IsNext(o) == LET candidates == Candidates(Living(line)) IN candidates = <<>> \/ candidates[1].owner = o
IsLeftToAny == lock.owner = Nobody /\ lock.until = Over /\ ~MayBeGranted(Candidates(Living(line))[1])
IsOwner(o) == Holder = o
MayTake(m) == IsOwner(m.owner) \/ (Holder = Nobody /\ (IsNext(m.owner) \/ (IsLeftToAny /\ IsIn(m.owner, Living(line)))))

Enter(m) == LET s == ServedIfFree(Living(line)) IN [s EXCEPT !.line = Entered(@, m)]
Refresh(m) == ServedIfFree(Renewed(Living(line), m))
Release(m) == IF IsOwner(m.owner) THEN Served(line, TRUE) ELSE As(line)
IsFirst(o) == IsIn(o, line) /\ Head(line).owner = o
Leave(m) == LET rest == Without(line, m.owner) IN
            IF Holder = m.owner THEN Served(rest, TRUE) ELSE IF IsFirst(m.owner) THEN ServedIfFree(rest) ELSE As(rest)

After(m) == CASE m.kind = "enter" /\ MayTake(m) -> Taken(m)
              [] m.kind = "enter" -> Enter(m)
              [] m.kind = "refresh" -> Refresh(m)
              [] m.kind = "release" -> Release(m)
              [] m.kind = "leave" -> Leave(m)

IsLeftToOthers(s) == s.lock.owner = Nobody
Answer(m, s) ==
  CASE m.kind = "enter" /\ MayTake(m) -> {[Message("taken", m.owner, m.sent) EXCEPT !.lease = m.lease]}
    [] m.kind = "enter" -> {[Message("busy", m.owner, m.sent) EXCEPT !.left = IsLeftToOthers(s)]}
    [] m.kind = "refresh" -> {Message(IF Holder = m.owner THEN "yours" ELSE IF IsIn(m.owner, Living(line)) THEN "kept" ELSE "gone", m.owner, m.sent)}
    [] OTHER -> {}

(* The server refuses to write the grant, or to send the message: then there is neither.  It was released all the same. *)
IsGrant(s) == s.lock.owner \notin {Nobody, Holder} /\ s.told # {}
Published(s) == {}
Refused(m, s) == State(Free(Untold), Living(Without(line, IF m.kind = "leave" THEN m.owner ELSE <<>>)), Published(s))

(* A release of an earlier version grants the first place a claim, dead or alive, and its message has no lease. *)
ClaimOf(m) ==
  LET living == Living(line) o == living[1].owner IN
  State([owner |-> o, until |-> now + Claim], Without(living, o), {Message("granted", o, living[1].nonce)})

------------------------------------------------------------------------------

(* Places that are passed over are excepted, and those who were told and have not come. *)
Precedes(place) == IsCandidate(place) /\ (MayBeGranted(place) \/ lock.owner # Nobody \/ lock.until # Over)
IsAhead(o, places) ==
  \E i \in 1..Len(arrived) : IsIn(arrived[i], SelectSeq(Living(places), Precedes)) /\ \A j \in 1..i : arrived[j] # o
Overtakes(s) == s.lock # lock /\ s.lock.owner \notin {Holder, Nobody} /\ IsAhead(s.lock.owner, s.line)
ArrivedIn(places, o) ==
  LET isNew == IsIn(o, places) /\ ~IsIn(o, Living(line))
      kept == SelectSeq(arrived, LAMBDA other : IsIn(other, places) /\ ~(isNew /\ other = o))
  IN IF isNew THEN Append(kept, o) ELSE kept

LongestLease == LET all == Leases \cup {GrantLease(lease) : lease \in Leases} IN
                CHOOSE lease \in all : \A other \in all : other <= lease
Spend(c) == faults < MaxFaults /\ faults' = faults + 1 /\ cost' = cost + c
Late(m) == [m EXCEPT !.late = TRUE]
(* Any message may arrive twice, the second time late. *)
Handled(m, sent) == \/ net' = (net \ {m}) \cup sent /\ UNCHANGED <<faults, cost>>
                    \/ net' = (net \ {m}) \cup sent \cup {Late(m)} /\ Spend(Interval)

(* Only those who live and listen hear of it. *)
Heard(told) == {m \in told : m.owner[1] \notin dead /\ (m.kind \in {"granted", "told"} => IsCounted(m.owner))}
Becomes(m, s) == /\ lock' = s.lock /\ line' = s.line /\ arrived' = ArrivedIn(s.line, m.owner)
                 /\ overtaken' = (overtaken \/ Overtakes(s))
                 /\ UNCHANGED <<now, ahead, own, listening, stalled, absent, dead, idle>>

Expire(m) == /\ m.kind \in Requests /\ IsExpired(m, now) /\ net' = net \ {m}
             /\ UNCHANGED <<now, ahead, lock, line, arrived, own, listening, stalled, absent, dead, idle, faults, cost, overtaken>>
Execute(m) == /\ m.kind \in Requests /\ ~IsExpired(m, now)
              /\ LET s == After(m) IN Becomes(m, s) /\ Handled(m, Heard(s.told \cup Answer(m, s)))
RefuseGrant(m, c) == /\ m.kind \in {"release", "leave"} /\ Holder = m.owner
                     /\ LET s == After(m) IN
                        IsGrant(s) /\ Becomes(m, Refused(m, s)) /\ Spend(c) /\ net' = (net \ {m}) \cup Heard(Refused(m, s).told)
ExecuteEarlier(m, c) == /\ m.kind = "release" /\ Holder = m.owner /\ Living(line) # <<>>
                        /\ LET s == ClaimOf(m) IN /\ lock' = s.lock /\ line' = s.line /\ arrived' = ArrivedIn(s.line, m.owner)
                                                  /\ Spend(c) /\ net' = (net \ {m}) \cup Heard(s.told)
                        /\ UNCHANGED <<now, ahead, own, listening, stalled, absent, dead, idle, overtaken>>
==============================================================================
