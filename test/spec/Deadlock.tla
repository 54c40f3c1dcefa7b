------------------------------- MODULE Deadlock -------------------------------
(***************************************************************************)
(* Callers that hold locks and wait for others.  A wait is written to a    *)
(* journal again and again; a caller follows the waits in the journal from *)
(* holder to holder.  What it reads may have ended meanwhile.              *)
(*                                                                         *)
(* docs/deadlocks.md: "Within two seconds exactly one of the callers gets  *)
(* `LockDeadlockError`: the one that began to wait last."                  *)
(* lib/engine/deadlock/confirm-deadlock.ts: "If each of them is written once  *)
(* more after that, all of them were under way when they were read."       *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Callers, Locks, Nobody, MaxWaits

VARIABLES holder,   \* of each lock
          wants,    \* of each caller: the lock that it waits for
          began,    \* of each caller: the number of its latest wait; a later wait has a larger one (a branch that
                    \* nobody seems to await counts as later than all others, see lib/engine/deadlock/victim-order.ts)
          waits,    \* how many waits there were
          journal,  \* of each caller: its wait as it was last written; it is erased later than it ends
          checks,   \* of each caller: the circle that it has found and has not confirmed
          victims   \* the circles for which a wait was refused

vars == <<holder, wants, began, waits, journal, checks, victims>>

Nothing == [lock |-> Nobody, holder |-> Nobody, began |-> 0]
NoCheck == [circle |-> [c \in {} |-> Nothing], again |-> {}, isReal |-> FALSE]

Init == /\ holder = [l \in Locks |-> Nobody] /\ wants = [c \in Callers |-> Nobody] /\ began = [c \in Callers |-> 0]
        /\ waits = 0 /\ journal = [c \in Callers |-> Nothing] /\ checks = [c \in Callers |-> NoCheck] /\ victims = {}

IsWaiting(c) == wants[c] # Nobody

Take(c, l) == /\ ~IsWaiting(c) /\ holder[l] = Nobody /\ holder' = [holder EXCEPT ![l] = c]
              /\ UNCHANGED <<wants, began, waits, journal, checks, victims>>

Release(c, l) == /\ ~IsWaiting(c) /\ holder[l] = c /\ holder' = [holder EXCEPT ![l] = Nobody]
                 /\ UNCHANGED <<wants, began, waits, journal, checks, victims>>

(* Only callers that hold something are part of this. *)
NumberOfAWait == waits + 1
Wait(c, l) == /\ ~IsWaiting(c) /\ waits < MaxWaits /\ holder[l] \notin {Nobody, c} /\ \E m \in Locks : holder[m] = c
              /\ wants' = [wants EXCEPT ![c] = l] /\ waits' = waits + 1 /\ began' = [began EXCEPT ![c] = NumberOfAWait]
              /\ UNCHANGED <<holder, journal, checks, victims>>

Stop(c) == wants' = [wants EXCEPT ![c] = Nobody] /\ checks' = [checks EXCEPT ![c] = NoCheck]

Granted(c) == /\ IsWaiting(c) /\ holder[wants[c]] = Nobody /\ holder' = [holder EXCEPT ![wants[c]] = c]
              /\ Stop(c) /\ UNCHANGED <<began, waits, journal, victims>>

Write(c) == /\ IsWaiting(c) /\ holder[wants[c]] # Nobody
            /\ journal' = [journal EXCEPT ![c] = [lock |-> wants[c], holder |-> holder[wants[c]], began |-> began[c]]]
            /\ checks' = [d \in Callers |-> [checks[d] EXCEPT !.again = IF c \in DOMAIN checks[d].circle THEN @ \cup {c} ELSE @]]
            /\ UNCHANGED <<holder, wants, began, waits, victims>>

Erase(c) == /\ ~IsWaiting(c) /\ journal[c] # Nothing /\ journal' = [journal EXCEPT ![c] = Nothing]
            /\ UNCHANGED <<holder, wants, began, waits, checks, victims>>

------------------------------------------------------------------------------
(* Whom a caller reaches from holder to holder, by the journal, or by what is so. *)
Next1(c, byJournal) == IF byJournal THEN journal[c].holder ELSE IF IsWaiting(c) THEN holder[wants[c]] ELSE Nobody

RECURSIVE Reach(_, _, _)
Reach(c, members, byJournal) ==
  LET next == Next1(c, byJournal) IN
  IF next = Nobody \/ next \in members THEN <<next, members>> ELSE Reach(next, members \cup {next}, byJournal)

CircleOf(c, byJournal) == LET end == Reach(c, {c}, byJournal) IN IF end[1] = c THEN end[2] ELSE {}

(* Every circle has exactly one wait that began last. *)
IsLast(c, members) == \A d \in members : d # c => journal[d].began < journal[c].began

Find(c) ==
  LET members == CircleOf(c, TRUE) IN
  /\ IsWaiting(c) /\ checks[c] = NoCheck /\ members # {} /\ journal[c].began = began[c] /\ IsLast(c, members)
  /\ checks' = [checks EXCEPT ![c] = [circle |-> [d \in members |-> journal[d]], again |-> {},
                                      isReal |-> CircleOf(c, FALSE) = members]]
  /\ UNCHANGED <<holder, wants, began, waits, journal, victims>>

IsSame(c) == \A d \in DOMAIN checks[c].circle : journal[d] = checks[c].circle[d]
WereWrittenAgain(c) == checks[c].again = DOMAIN checks[c].circle

Refuse(c) ==
  /\ checks[c] # NoCheck /\ IsSame(c) /\ WereWrittenAgain(c)
  /\ victims' = victims \cup {[victim |-> c, circle |-> checks[c].circle, isReal |-> checks[c].isReal]}
  /\ Stop(c) /\ UNCHANGED <<holder, began, waits, journal>>

Forget(c) == /\ checks[c] # NoCheck /\ ~IsSame(c) /\ checks' = [checks EXCEPT ![c] = NoCheck]
             /\ UNCHANGED <<holder, wants, began, waits, journal, victims>>

Next == \E c \in Callers : \/ Granted(c) \/ Write(c) \/ Erase(c) \/ Find(c) \/ Refuse(c) \/ Forget(c)
                           \/ \E l \in Locks : Take(c, l) \/ Release(c, l) \/ Wait(c, l)

Spec == /\ Init /\ [][Next]_vars
        /\ \A c \in Callers : /\ WF_vars(Write(c)) /\ WF_vars(Erase(c))
                             /\ WF_vars(Find(c)) /\ WF_vars(Refuse(c)) /\ WF_vars(Forget(c))

NoVictimWithoutCircle == \A v \in victims : v.isReal
OneVictimOfACircle == \A v, w \in victims : v.circle = w.circle => v = w
(* Exactly one, in the end. *)
EveryCircleEnds == []<>(\A c \in Callers : CircleOf(c, FALSE) = {})
==============================================================================
