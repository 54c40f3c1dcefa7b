------------------------------- MODULE FairQueue -------------------------------
(***************************************************************************)
(* A fair lock: waiters stand in a queue that the server keeps, and lose   *)
(* their place when they do not refresh it in time.                        *)
(*                                                                         *)
(* docs/choosing-a-lock.md: "strict order of arrival over all processes".  *)
(* lib/backends/redis/scripts/includes/fair/head-of.lua: "Dead waiters     *)
(* before it are removed."                                                 *)
(***************************************************************************)
EXTENDS Integers, Sequences

CONSTANTS Owners, Nobody, WaiterTimeout, LeaseTime, MaxTime

VARIABLES now, holder, until,
          queue,     \* owners, the head first
          alive,     \* until when each of them keeps its place
          died,      \* when a process ended without a word; MaxTime + 1: it lives
          arrivals,  \* in which order those came that still wait
          overtaken  \* somebody got the lock while a living waiter was before it

vars == <<now, holder, until, queue, alive, died, arrivals, overtaken>>

Init == /\ now = 0 /\ holder = Nobody /\ until = 0 /\ queue = <<>> /\ alive = [o \in Owners |-> 0]
        /\ died = [o \in Owners |-> MaxTime + 1] /\ arrivals = <<>> /\ overtaken = FALSE

Lives(o) == died[o] > MaxTime
Without(sequence, o) == SelectSeq(sequence, LAMBDA other : other # o)
IsIn(o, sequence) == \E i \in 1..Len(sequence) : sequence[i] = o
Living(sequence) == SelectSeq(sequence, LAMBDA o : alive[o] > now)
Holder == IF until > now THEN holder ELSE Nobody

Tick == now < MaxTime /\ now' = now + 1 /\ UNCHANGED <<holder, until, queue, alive, died, arrivals, overtaken>>

(* Whether a waiter may have the lock that is free. *)
IsFirst(o) == Living(queue) = <<>> \/ Head(Living(queue)) = o
(* Where somebody enters who has no place. *)
Entered(sequence, o) == IF IsIn(o, sequence) THEN sequence ELSE Append(sequence, o)
(* Dead waiters before the head are removed. *)
Kept == Living(queue)

Before(o, sequence) == IF IsIn(o, sequence) THEN {sequence[i] : i \in 1..(CHOOSE i \in 1..Len(sequence) : sequence[i] = o) - 1}
                       ELSE {sequence[i] : i \in 1..Len(sequence)}

Ask(o) ==
  /\ Lives(o) /\ holder # o
  /\ IF Holder = Nobody /\ IsFirst(o)
     THEN /\ holder' = o /\ until' = now + LeaseTime
          /\ queue' = Without(Kept, o) /\ arrivals' = Without(Living(arrivals), o)
          /\ overtaken' = (overtaken \/ Before(o, Living(arrivals)) # {})
          /\ UNCHANGED alive
     ELSE /\ queue' = Entered(Kept, o) /\ arrivals' = IF IsIn(o, Living(arrivals)) THEN Living(arrivals) ELSE Append(Living(arrivals), o)
          /\ alive' = [alive EXCEPT ![o] = now + WaiterTimeout]
          /\ UNCHANGED <<holder, until, overtaken>>
  /\ UNCHANGED <<now, died>>

MayRefresh(o) == Lives(o)
Refresh(o) == /\ MayRefresh(o) /\ IsIn(o, queue) /\ alive[o] > now /\ alive' = [alive EXCEPT ![o] = now + WaiterTimeout]
              /\ UNCHANGED <<now, holder, until, queue, died, arrivals, overtaken>>

(* A caller whose waitTime is over leaves nothing behind. *)
Leave(o) == /\ Lives(o) /\ IsIn(o, queue) /\ queue' = Without(queue, o) /\ arrivals' = Without(arrivals, o)
            /\ UNCHANGED <<now, holder, until, alive, died, overtaken>>

Release(o) == /\ Lives(o) /\ Holder = o /\ holder' = Nobody /\ until' = 0
              /\ UNCHANGED <<now, queue, alive, died, arrivals, overtaken>>

Die(o) == Lives(o) /\ died' = [died EXCEPT ![o] = now] /\ UNCHANGED <<now, holder, until, queue, alive, arrivals, overtaken>>

Next == Tick \/ \E o \in Owners : Ask(o) \/ Refresh(o) \/ Leave(o) \/ Release(o) \/ Die(o)
Spec == Init /\ [][Next]_vars

NobodyIsOvertaken == ~overtaken

(* A waiter that died keeps others waiting for no longer than its place lasts. *)
TheDeadMakeWay == \A o \in Owners : IsIn(o, Living(queue)) => now < died[o] + WaiterTimeout
==============================================================================
