--------------------------------- MODULE Line ---------------------------------
(***************************************************************************)
(* What the processes do that wait for one lock in its line, and what is   *)
(* promised to them.  The server is in LineServer.                         *)
(*                                                                         *)
(* lib/backends/line-backend.ts: "Its process then acquires the lock with  *)
(* its full lease, under the same owner."  Here the process may also begin *)
(* before, if the message is about its last request to enter, and the      *)
(* claim holds if it counts from the moment before that was sent, plus     *)
(* what passed on the server between that request and the grant.           *)
(*                                                                         *)
(* A message arrives before time passes, unless a fault makes it late.     *)
(* Then it arrives at any time, or never: it is lost.  All clocks run at   *)
(* the same speed.  Lease is about those that do not, and about what is    *)
(* left of an owner id that nobody uses any more.                          *)
(***************************************************************************)
EXTENDS LineServer

CONSTANTS Interval,   \* how often a process refreshes its place
          MaxIds

vars == <<now, lock, line, arrived, net, own, stalled, died, idle, faults, overtaken>>

(* An owner id is <<process, number>>, and each attempt has another one.  `nonce` and `asked`: its last request to enter, *)
(* and the moment before it was sent.  `due`: when it refreshes its place, or asks again.                                 *)
New == [phase |-> "idle", number |-> 1, until |-> 0, nonce |-> 0, asked |-> 0, due |-> 0]

Init == /\ now = 0 /\ lock = Released /\ line = <<>> /\ arrived = <<>> /\ net = {} /\ own = [p \in Processes |-> New]
        /\ stalled = {} /\ died = [p \in Processes |-> MaxTime + 1] /\ idle = 0 /\ faults = 0 /\ overtaken = FALSE

Id(p) == <<p, own[p].number>>
Works(p) == died[p] > MaxTime /\ p \notin stalled
Waits(p) == own[p].phase = "waiting"
Holds(p) == own[p].phase = "held"
Believes(p) == died[p] > MaxTime /\ Holds(p) /\ now < own[p].until

------------------------------------------------------------------------------
(* Processes: what they do by themselves *)

Request(p, kind) == {Message(kind, Id(p), now, 0)}
Asking(s, kind) == IF kind # "enter" \/ s.phase # "waiting" THEN s ELSE [s EXCEPT !.nonce = now, !.asked = now]
(* Requests are executed at once, unless they are late. *)
IsQuiet == \A m \in net : m.kind \in Requests => m.late
Sends(p, kind, state) == /\ IsQuiet /\ Works(p)
                         /\ net' = net \cup Request(p, kind) /\ own' = [own EXCEPT ![p] = Asking(state, kind)]
                         /\ UNCHANGED <<now, lock, line, arrived, stalled, died, idle, faults, overtaken>>

Waiting(p) == [own[p] EXCEPT !.phase = "waiting", !.due = now + Interval]
Spent(p) == [New EXCEPT !.number = own[p].number + 1]

(* A caller comes.  A process that does not listen yet tries once, and enters the line when it listens. *)
MayCall(p) == own[p].phase = "idle" /\ own[p].number <= MaxIds
Try(p) == MayCall(p) /\ Sends(p, "try", Waiting(p))
Wait(p) == MayCall(p) /\ Sends(p, "enter", Waiting(p))
Keep(p) == Waits(p) /\ now >= own[p].due /\ \E kind \in {"refresh", "enter"} : Sends(p, kind, Waiting(p))
GiveUp(p) == Waits(p) /\ Sends(p, "leave", Spent(p))
GiveBack(p) == Holds(p) /\ Sends(p, "release", Spent(p))

------------------------------------------------------------------------------
(* Processes: what they do when they hear something *)

Max(a, b) == IF a > b THEN a ELSE b
IsFor(m, p) == m.owner = Id(p)
(* The moment before the request was sent. *)
CountsFrom(m) == m.sent
HasNonce(p, m) == m.sent = own[p].nonce
EndOfClaim(p, m) == own[p].asked + m.at + Claim
IsCertain(p, m) == HasNonce(p, m) /\ now < EndOfClaim(p, m)
Answered(o) == o
AfterGone == "enter"

Held(p, until) == [New EXCEPT !.phase = "held", !.number = own[p].number, !.until = Max(own[p].until, until)]

(* What the process knows then, and what it sends.  A grant is confirmed before the body begins, or while it runs. *)
Hears(p, m) ==
  LET o == own[p] until == CountsFrom(m) + LeaseTime IN
  CASE ~IsFor(m, p) -> {<<o, "">>}
    [] m.kind = "taken" -> IF now < until THEN {<<Held(p, until), "">>} ELSE {<<Spent(p), "release">>}
    [] m.kind = "granted" /\ Holds(p) -> {<<o, "">>}
    [] m.kind = "granted" -> {<<o, "enter">>} \cup IF IsCertain(p, m) THEN {<<Held(p, EndOfClaim(p, m)), "enter">>} ELSE {}
    [] Holds(p) -> {<<Spent(p), "leave">>}
    [] m.kind = "tried" -> {<<o, "enter">>}
    [] m.kind = "gone" -> {<<o, AfterGone>>}
    [] OTHER -> {<<Answered(o), "">>}

Hear(m) == LET p == m.owner[1] IN
  /\ IsQuiet /\ m.kind \notin Requests /\ Works(p)
  /\ \E next \in Hears(p, m) : /\ own' = [own EXCEPT ![p] = Asking(next[1], next[2])]
                               /\ Handled(m, IF next[2] = "" THEN {} ELSE Request(p, next[2]))
  /\ UNCHANGED <<now, lock, line, arrived, stalled, died, idle, overtaken>>

------------------------------------------------------------------------------
(* Faults, and time *)

Delay(m) == /\ ~m.late /\ Spend /\ net' = (net \ {m}) \cup {Late(m)}
            /\ UNCHANGED <<now, lock, line, arrived, own, stalled, died, idle, overtaken>>
Stall(p) == /\ IsQuiet /\ Works(p) /\ own[p].phase # "idle" /\ Spend /\ stalled' = stalled \cup {p}
            /\ UNCHANGED <<now, lock, line, arrived, net, own, died, idle, overtaken>>
Resume(p) == /\ IsQuiet /\ p \in stalled /\ stalled' = stalled \ {p}
             /\ UNCHANGED <<now, lock, line, arrived, net, own, died, idle, faults, overtaken>>
Die(p) == /\ IsQuiet /\ Works(p) /\ own[p].phase # "idle" /\ Spend /\ died' = [died EXCEPT ![p] = now]
          /\ own' = [own EXCEPT ![p] = New] /\ net' = {m \in net : m.kind \in Requests \/ m.owner[1] # p}
          /\ UNCHANGED <<now, lock, line, arrived, stalled, idle, overtaken>>
LoseLine == /\ IsQuiet /\ line # <<>> /\ Spend /\ line' = <<>> /\ arrived' = <<>>
            /\ UNCHANGED <<now, lock, net, own, stalled, died, idle, overtaken>>

(* Nobody keeps a lock that is not renewed until the very end of its lease. *)
HasToAct(p) == \/ Waits(p) /\ now >= own[p].due
               \/ Holds(p) /\ now + 1 >= own[p].until
               \/ \E m \in net : m.owner[1] = p /\ m.kind \notin Requests /\ ~m.late
(* Nobody will take notice of it. *)
IsOver(m) == IF m.kind \in Taking THEN IsExpired(m, now + 1)
             ELSE m.kind # "granted" /\ m.owner # Id(m.owner[1]) /\ Holder # m.owner /\ ~IsIn(m.owner, line)

IsIdle == (\E p \in Processes : Works(p) /\ Waits(p)) /\ ~\E p \in Processes : Believes(p)

Tick == /\ now < MaxTime /\ now' = now + 1 /\ IsQuiet /\ \A p \in Processes : Works(p) => ~HasToAct(p)
        /\ \E p \in Processes : own[p] # New
        /\ idle' = IF IsIdle THEN idle + 1 ELSE 0
        /\ lock' = IF lock.until = now + 1 THEN Ended ELSE lock
        /\ net' = {m \in net : ~IsOver(m)}
        /\ UNCHANGED <<line, arrived, own, stalled, died, faults, overtaken>>

(* One a line: TLC counts these by their place alone. *)
Next == \/ Tick \/ LoseLine
        \/ \E p \in Processes : Try(p) \/ Wait(p) \/ Keep(p) \/ GiveUp(p) \/ GiveBack(p) \/ Stall(p) \/ Resume(p) \/ Die(p)
        \/ \E m \in net : Execute(m)
        \/ \E m \in net : Delay(m)
        \/ \E m \in net : Hear(m)
Spec == Init /\ [][Next]_vars

Symmetric == Permutations(Processes)

------------------------------------------------------------------------------
(* Promises *)

(* Two that believe by their own clocks never overlap. *)
OneBelieves == \A p, q \in Processes : Believes(p) /\ Believes(q) => p = q
(* A grant is believed only while its claim holds, and a lease only while the server keeps it. *)
BeliefIsCovered == \A p \in Processes : Believes(p) => Holder = Id(p)
(* While nothing goes wrong, the lock is in use as long as somebody waits.  A fault costs a lease and a refresh at most. *)
NobodyWaitsInVain == idle <= faults * (LeaseTime + Interval)
(* Whoever comes, or comes back after a release, is behind those who wait. *)
NobodyIsOvertaken == ~overtaken
(* What a dead process leaves behind lapses.  A late refresh keeps its place once more. *)
TheDeadMakeWay == \A p \in Processes : died[p] <= MaxTime =>
  LET lapsed == died[p] + faults * WaiterTimeout IN
  /\ \A i \in 1..Len(line) : line[i].owner[1] = p => line[i].lapses <= lapsed
  /\ Holder # Nobody /\ Holder[1] = p => lock.until < lapsed + Claim
==============================================================================
