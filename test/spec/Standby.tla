------------------------------- MODULE Standby -------------------------------
(***************************************************************************)
(* A lease has a second renewer: a thread, while the event loop of its     *)
(* process is blocked.                                                     *)
(*                                                                         *)
(* lib/standby/README.md: "For the engine, such a lease was confirmed, by  *)
(* a request that somebody else sent."  "Each heartbeat and each grant is  *)
(* [a sign of life], because after an idle hour the heartbeat is old."     *)
(* "A late answer about the lease before has another generation."  "Its    *)
(* renewals only lengthen, and are not executed after the command          *)
(* timeout."  "Before the loop shortens a lease, it withdraws the slot,    *)
(* and waits for the request under way."  "A thread that has died leaves   *)
(* requests.  The next one starts when they can no longer be executed."    *)
(*                                                                         *)
(* The process has leases 1, 2, … of one lock, one after the other in one  *)
(* slot, whose generation is the number of the lease.  Requests of the     *)
(* loop are executed at once: late ones, and clocks that disagree, are the *)
(* subject of Lease.                                                       *)
(***************************************************************************)
EXTENDS Integers

CONSTANTS Ticket,      \* the owner that a detached lock has
          Nobody,
          Leases,      \* how many leases the process gets
          LeaseTime,   \* of which a renewal is due after one tick
          Extension,   \* the time of `extend()`: longer
          Rest,        \* what is left of a lease that becomes shorter, or of a ticket
          Timeout,     \* commandTimeout: how long a request of the thread may be executed
          Keep,        \* keepWhileBlocked
          MaxTime

VARIABLES now,
          lock,      \* what the server keeps: an owner, and until when
          current,   \* the latest lease of the process
          phase,     \* of that lease: "held", "withdrawn" (before it becomes shorter), "rest", "detached", or "left"
          until,     \* its end, as the loop itself has confirmed it; or the end of the rest, or of the ticket
          blocked,   \* since when the loop is blocked; Never: it is not
          beat,      \* its last sign of life
          due,       \* in the slot: when the next renewal is due
          inFlight,  \* in the slot: the thread has a request under way
          said,      \* the word of the slot: about which lease, and the moment before it was sent, or Gone
          requests, answers,  \* of the thread
          alive,     \* whether there is a thread
          owed       \* whether time has passed although somebody had something to do at once

loop == <<current, phase, until, blocked, beat>>
thread == <<said, requests, answers, alive>>
vars == <<now, lock, loop, due, inFlight, thread, owed>>

Never == -1
Gone == -1
Free == [owner |-> Nobody, until |-> 0]
Holder == IF lock.until > now THEN lock.owner ELSE Nobody
Max(a, b) == IF a > b THEN a ELSE b

(* An idle time has passed before the first lease. *)
Init == /\ now = 0 /\ lock = Free /\ current = 0 /\ phase = "left" /\ until = 0 /\ blocked = Never /\ beat = -Keep
        /\ due = 0 /\ inFlight = FALSE /\ said = [about |-> 0, sent |-> 0]
        /\ requests = {} /\ answers = {} /\ alive = TRUE /\ owed = FALSE

------------------------------------------------------------------------------
(* What the loop believes: what one of the two has confirmed. *)

IsHeld == phase \in {"held", "withdrawn"}
IsSaid == said.about = current
IsGone == IsSaid /\ said.sent = Gone
End == IF IsSaid /\ ~IsGone THEN Max(until, said.sent + LeaseTime) ELSE until
Believes == IsHeld /\ ~IsGone /\ now < End

------------------------------------------------------------------------------
(* The loop *)

Runs == blocked = Never
(* The slot is free: the thread has nothing to do with it any more. *)
Becomes(next) == phase' = next /\ inFlight' = FALSE
SignOfLife == now

Grant == /\ Runs /\ ~IsHeld /\ current < Leases /\ Holder = Nobody
         /\ current' = current + 1 /\ Becomes("held") /\ beat' = SignOfLife
         /\ lock' = [owner |-> current + 1, until |-> now + LeaseTime]
         /\ until' = now + LeaseTime /\ due' = now + 1
         /\ UNCHANGED <<now, blocked, thread, owed>>

(* The next renewal is due when one tick less than the lease time is left of it. *)
Confirm(time) == /\ Runs /\ phase = "held" /\ Believes
                 /\ lock' = IF Holder = current THEN [lock EXCEPT !.until = now + time] ELSE lock
                 /\ until' = now + time /\ due' = now + time - LeaseTime + 1
                 /\ UNCHANGED <<now, current, phase, blocked, beat, inFlight, thread, owed>>
Renew == due <= now /\ Confirm(LeaseTime)
Extend == until < now + Extension /\ Confirm(Extension)

Release == /\ Runs /\ IsHeld /\ Becomes("left")
           /\ lock' = IF Holder = current THEN Free ELSE lock
           /\ UNCHANGED <<now, current, until, blocked, beat, due, thread, owed>>

Withdraw == /\ Runs /\ phase = "held" /\ Believes /\ phase' = "withdrawn"
            /\ UNCHANGED <<now, lock, current, until, blocked, beat, due, inFlight, thread, owed>>
MayShorten == ~inFlight
ToRest(owner) == /\ lock' = IF Holder = current THEN [owner |-> owner, until |-> now + Rest] ELSE lock
                 /\ until' = now + Rest
                 /\ UNCHANGED <<now, current, blocked, beat, due, thread, owed>>
Shorten == Runs /\ phase = "withdrawn" /\ MayShorten /\ Becomes("rest") /\ ToRest(current)
(* The lock gets another owner, so nothing has to be withdrawn. *)
Detach == Runs /\ phase = "held" /\ Believes /\ Becomes("detached") /\ ToRest(Ticket)

(* What was due before is renewed as soon as the loop runs again. *)
Block == /\ Runs /\ IsHeld /\ blocked' = now /\ owed' = (owed \/ due < now)
         /\ UNCHANGED <<now, lock, current, phase, until, beat, due, inFlight, thread>>
Resume == /\ ~Runs /\ blocked' = Never /\ beat' = now
          /\ UNCHANGED <<now, lock, current, phase, until, due, inFlight, thread, owed>>

------------------------------------------------------------------------------
(* The thread *)

Silence == now - beat
IsTime == Silence >= 1 /\ Silence < Keep
IsOpen == phase = "held"
CanBegin == alive /\ IsTime /\ IsOpen /\ ~inFlight /\ due <= now

Begin == /\ CanBegin /\ inFlight' = TRUE
         /\ requests' = requests \cup {[owner |-> current, sent |-> now, awaited |-> TRUE]}
         /\ UNCHANGED <<now, lock, loop, due, said, answers, alive, owed>>

IsOfThisLease(a) == a.owner = current
(* Nobody waits for its answer any more. *)
IsLate(m) == now > m.sent + Timeout
(* By the estimate of the server's clock that is never too late. *)
MayExecute(m) == ~IsLate(m)
CountsFrom(a) == a.sent

Settle(m, next) == /\ inFlight' = IF IsOfThisLease(m) THEN FALSE ELSE inFlight
                   /\ due' = IF IsOfThisLease(m) THEN Max(due, next) ELSE due
Say(about, sent) == said' = [about |-> about, sent |-> sent]

Read(a) == /\ answers' = answers \ {a}
           /\ IF IsOfThisLease(a) THEN Say(current, IF a.ok THEN CountsFrom(a) ELSE Gone) ELSE UNCHANGED said
           /\ Settle(a, now + 1)
           /\ UNCHANGED <<now, lock, loop, requests, alive, owed>>

Unawaited(m) == [m EXCEPT !.awaited = FALSE]
GiveUp(m) == /\ m.awaited /\ IsLate(m) /\ Settle(m, due)
             /\ requests' = (requests \ {m}) \cup IF MayExecute(m) THEN {Unawaited(m)} ELSE {}
             /\ UNCHANGED <<now, lock, loop, said, answers, alive, owed>>

Die == /\ alive /\ alive' = FALSE /\ answers' = {} /\ owed' = TRUE
       /\ requests' = {Unawaited(m) : m \in requests}
       /\ UNCHANGED <<now, lock, loop, due, inFlight, said>>
MayStart == \A m \in requests : IsLate(m)
Start == /\ ~alive /\ MayStart /\ alive' = TRUE /\ inFlight' = FALSE
         /\ UNCHANGED <<now, lock, loop, due, said, requests, answers, owed>>

------------------------------------------------------------------------------
(* The server *)

Renewed(m) == Holder = m.owner
Longer(end) == Max(end, lock.until)

Execute(m) == /\ MayExecute(m) /\ requests' = requests \ {m}
              /\ answers' = IF m.awaited THEN answers \cup {[owner |-> m.owner, sent |-> m.sent, ok |-> Renewed(m)]} ELSE answers
              /\ lock' = IF ~Renewed(m) THEN lock
                         ELSE [owner |-> IF Holder = Nobody THEN m.owner ELSE Holder, until |-> Longer(now + LeaseTime)]
              /\ UNCHANGED <<now, loop, due, inFlight, said, alive, owed>>

(* Heartbeats are given while something is held. *)
Tick == /\ now < MaxTime /\ now' = now + 1
        /\ beat' = IF Runs /\ IsHeld THEN now + 1 ELSE beat
        /\ owed' = (owed \/ CanBegin \/ requests # {} \/ answers # {} \/ (Runs /\ phase = "held" /\ due <= now))
        /\ UNCHANGED <<lock, current, phase, until, blocked, due, inFlight, thread>>

Next == \/ Tick \/ Grant \/ Renew \/ Extend \/ Release \/ Withdraw \/ Shorten \/ Detach \/ Block \/ Resume
        \/ Begin \/ Die \/ Start
        (* One a line: TLC counts these by their place alone. *)
        \/ \E m \in requests : Execute(m)
        \/ \E m \in requests : GiveUp(m)
        \/ \E a \in answers : Read(a)
Spec == Init /\ [][Next]_vars

------------------------------------------------------------------------------
(* Promises *)

(* The server keeps the lock for whoever believes that it holds it. *)
BeliefIsCovered == Believes => Holder = current
(* No answer about another lease ends a lease. *)
NothingIsLostInVain == IsHeld /\ IsGone => Holder # current
(* While nobody is late, a blocked loop keeps its lock for as long as the option says. *)
KeptWhileBlocked == phase = "held" /\ ~Runs /\ ~owed /\ now - blocked < Keep => Holder = current
(* And for one lease more at most, after the last request that may be executed. *)
NotKeptForEver == IsHeld /\ ~Runs /\ Holder = current => lock.until <= Max(until, blocked + Keep + Timeout + LeaseTime - 1)
(* What the loop has given back, made shorter or detached stays as the loop has left it. *)
LeftIsLeft == /\ phase = "left" => Holder # current
              /\ \A former \in 1..(current - 1) : Holder # former
ShorterStaysShorter == phase = "rest" /\ Holder = current => lock.until <= until
TicketIsAsLong == Holder = Ticket => lock.until = until
==============================================================================
