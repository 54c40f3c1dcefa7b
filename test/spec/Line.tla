--------------------------------- MODULE Line ---------------------------------
(***************************************************************************)
(* What the processes do that wait for one lock in its line, and what is   *)
(* promised to them.  The server is in LineServer.                         *)
(*                                                                         *)
(* A process begins with the message that grants it the lock, if this is   *)
(* about a request of its present place and about the lease that its       *)
(* caller wants.  The lease counts from the moment before that request was *)
(* sent for the first time.  Otherwise it asks under the same owner.       *)
(*                                                                         *)
(* A message arrives before time passes, unless a fault makes it late.     *)
(* Then it arrives at any time, or never: it is lost.  All clocks run at   *)
(* the same speed.  Lease is about those that do not, and about what is    *)
(* left of an owner id that nobody uses any more.                          *)
(***************************************************************************)
EXTENDS LineServer

CONSTANT MaxIds

vars == <<now, ahead, lock, line, arrived, net, own, listening, stalled, absent, dead, idle, faults, cost, overtaken>>

(* An owner id is <<process, number>>, and each attempt has another one.  `lease` and `want`: of the caller that is next. *)
(* `moments`: each request that was sent under this id, by its nonce, and the moment from which a lease counts that it    *)
(* was given.  `asked`: the nonce of the acquisition that is not answered.  `again`: it asks when that is.  `due`: when   *)
(* it refreshes its place, or asks.  `short`: the body began with less of its lease than it may.  `long`: it began with   *)
(* more than its caller wants.                                                                                            *)
None == -1
New == [phase |-> "idle", number |-> 1, lease |-> 0, want |-> "", until |-> 0, moments |-> {}, asked |-> None, twice |-> FALSE,
        again |-> FALSE, due |-> 0, byClock |-> FALSE, short |-> FALSE, long |-> FALSE]

Init == /\ now = 0 /\ ahead = 0 /\ lock = Free(Untold) /\ line = <<>> /\ arrived = <<>> /\ net = {}
        /\ own = [p \in Processes |-> New] /\ listening = Processes /\ stalled = {} /\ absent = [p \in Processes |-> MaxTime + 1]
        /\ dead = {} /\ idle = 0 /\ faults = 0 /\ cost = 0 /\ overtaken = FALSE

Id(p) == <<p, own[p].number>>
Works(p) == p \notin dead \cup stalled
Waits(p) == own[p].phase = "waiting"
Holds(p) == own[p].phase = "held"
IsAsking(p) == own[p].asked # None
Believes(p) == p \notin dead /\ Holds(p) /\ now < own[p].until

------------------------------------------------------------------------------
(* Processes: what they do by themselves *)

Request(p, o, kind) == {[Message(kind, <<p, o.number>>, now) EXCEPT !.lease = o.lease, !.want = o.want]}
Noting(o) == [o EXCEPT !.moments = @ \cup {<<now, now>>}]
Asking(o, kind) == CASE kind = "enter" -> [Noting(o) EXCEPT !.asked = now, !.twice = FALSE, !.again = FALSE, !.due = now + Interval]
                     [] kind = "refresh" -> [Noting(o) EXCEPT !.due = now + Interval]
                     [] OTHER -> o
(* Requests are executed at once, unless they are late. *)
IsQuiet == \A m \in net : m.kind \in Requests => m.late
Acts(p) == IsQuiet /\ Works(p) /\ UNCHANGED <<now, ahead, lock, line, arrived, listening, stalled, absent, dead, idle, faults, cost, overtaken>>
Sends(p, kind, o) == Acts(p) /\ net' = net \cup Request(p, o, kind) /\ own' = [own EXCEPT ![p] = Asking(o, kind)]
(* The id is not used any more. *)
Ends(p, kind) == Acts(p) /\ net' = net \cup Request(p, own[p], kind) /\ own' = [own EXCEPT ![p] = [New EXCEPT !.number = own[p].number + 1]]

Wait(p) == /\ own[p].phase = "idle" /\ own[p].number <= MaxIds
           /\ \E lease \in Leases, want \in Wants :
                Sends(p, "enter", [New EXCEPT !.phase = "waiting", !.number = own[p].number, !.lease = lease, !.want = want])
(* Another caller of the process is next. Nothing is sent. *)
Change(p) == /\ Waits(p) /\ ~IsAsking(p) /\ Acts(p) /\ UNCHANGED net
             /\ \E lease \in Leases, want \in Wants : /\ <<lease, want>> # <<own[p].lease, own[p].want>>
                                                      /\ own' = [own EXCEPT ![p].lease = lease, ![p].want = want]
Keep(p) == /\ Waits(p) /\ now >= own[p].due /\ ~IsAsking(p)
           /\ \E kind \in IF own[p].again THEN {"enter"} ELSE {"refresh", "enter"} : Sends(p, kind, own[p])
GiveUp(p) == Waits(p) /\ ~IsAsking(p) /\ Ends(p, "leave")
GiveBack(p) == Holds(p) /\ Ends(p, "release")

(* A request that is not answered is sent again, with the same nonce and deadline, or given up with its id. *)
HasNonce(o, m) == \E pair \in o.moments : pair[1] = m.sent
Moment(o, m) == IF HasNonce(o, m) THEN (CHOOSE pair \in o.moments : pair[1] = m.sent)[2] ELSE m.sent
AfterResend(o) == o
IsUnanswered(p) == Waits(p) /\ IsAsking(p) /\ now > own[p].asked
Resend(p) == /\ IsUnanswered(p) /\ ~own[p].twice /\ Acts(p)
             /\ net' = net \cup {[m EXCEPT !.sent = own[p].asked] : m \in Request(p, own[p], "enter")}
             /\ own' = [own EXCEPT ![p] = [AfterResend(@) EXCEPT !.twice = TRUE]]
Abandon(p) == IsUnanswered(p) /\ now > own[p].asked + Timeout /\ Ends(p, "leave")

------------------------------------------------------------------------------
(* Processes: what they do when they hear something *)

IsFor(m, p) == m.owner = Id(p) /\ own[p].phase # "idle"
IsOfPlace(o, m) == HasNonce(o, m)
HasLease(m) == m.lease > 0
(* Whoever wants less than what was written counts on what it wants. *)
LeaseOf(o, m) == o.lease
IsWritten(o, m) == o.lease <= m.lease
IsWanted(o, m) == o.want = "grant" /\ IsWritten(o, m) /\ GrantLease(o.lease) = m.lease
IsEnough(begin, lease) == 3 * (begin + lease - now) >= 2 * lease
IsUndisturbed(o) == o.asked = None
(* The moment before the request was sent.  Where that leaves too little of the lease, the server's clock says how much   *)
(* later it began.                                                                                                        *)
IsByClock(o, m) == ~IsEnough(Moment(o, m), LeaseOf(o, m))
BeginOfGrant(o, m) == IF IsByClock(o, m) THEN Moment(o, m) + m.after ELSE Moment(o, m)
IsCertain(o, m) == /\ IsOfPlace(o, m) /\ HasLease(m) /\ IsUndisturbed(o) /\ IsWanted(o, m)
                   /\ BeginOfGrant(o, m) <= now /\ IsEnough(BeginOfGrant(o, m), LeaseOf(o, m))

Held(o, until) == [New EXCEPT !.phase = "held", !.number = o.number, !.lease = o.lease, !.until = until]
Begun(o, m) == LET until == BeginOfGrant(o, m) + LeaseOf(o, m) IN
               [Held(o, until) EXCEPT !.byClock = IsByClock(o, m), !.short = 3 * (until - now) < 2 * o.lease,
                                !.long = LeaseOf(o, m) > o.lease \/ m.lease > Max(ShortestGrant, o.lease)]
Answered(o) == [o EXCEPT !.asked = None, !.twice = FALSE]
AsksAgain(o) == IF o.asked = None THEN <<o, "enter">> ELSE <<[o EXCEPT !.again = TRUE], "">>
SpentId(o) == [New EXCEPT !.number = o.number + 1]
(* The lock is left to others: it asks when they have had their time. *)
Afterwards(o, m) == IF o.twice THEN <<SpentId(o), "leave">>
                    ELSE IF o.again THEN <<Answered(o), "enter">>
                    ELSE IF m.left THEN <<[Answered(o) EXCEPT !.again = TRUE], "">> ELSE <<Answered(o), "">>
AfterYours(o) == AsksAgain(o)
AfterGone(o) == AsksAgain(o)
(* A grant of an id that it does not use any more. *)
AfterUnknown(m) == "leave"

(* What the process knows then, and what it sends. *)
Hears(p, m) ==
  LET o == own[p] IN
  CASE ~IsFor(m, p) -> <<o, IF m.kind \in {"granted", "taken"} THEN AfterUnknown(m) ELSE "">>
    [] Holds(p) -> <<o, "">>
    [] m.kind = "taken" -> LET until == Moment(o, m) + m.lease IN IF now < until THEN <<Held(o, until), "">> ELSE <<SpentId(o), "release">>
    [] m.kind = "busy" /\ m.sent = o.asked -> Afterwards(o, m)
    [] m.kind = "granted" /\ IsCertain(o, m) -> <<Begun(o, m), "">>
    [] m.kind \in {"granted", "told"} -> AsksAgain(o)
    [] m.kind = "yours" -> AfterYours(o)
    [] m.kind = "gone" -> AfterGone(o)
    [] OTHER -> <<o, "">>

Hear(m) == LET p == m.owner[1] next == Hears(p, m) IN
  /\ IsQuiet /\ m.kind \notin Requests /\ Works(p)
  /\ own' = [own EXCEPT ![p] = Asking(next[1], next[2])]
  /\ Handled(m, IF next[2] = "" THEN {} ELSE {[r EXCEPT !.owner = m.owner] : r \in Request(p, next[1], next[2])})
  /\ UNCHANGED <<now, ahead, lock, line, arrived, listening, stalled, absent, dead, idle, overtaken>>

------------------------------------------------------------------------------
(* Faults, and time *)

(* What a fault may cost in time in which nobody uses the lock: what was sent for nothing is noticed at the next refresh, *)
(* or when the request is given up, and what the server does not hear of lasts as long as the lease.                      *)
Unheard == Interval + Timeout
Lost(m) == IF m.kind \in {"release", "leave"} THEN LongestLease ELSE Unheard
Delay(m) == /\ ~m.late /\ Spend(Lost(m)) /\ net' = (net \ {m}) \cup {Late(m)}
            /\ UNCHANGED <<now, ahead, lock, line, arrived, own, listening, stalled, absent, dead, idle, overtaken>>
Refuse(m) == RefuseGrant(m, Interval)
Earlier(m) == ExecuteEarlier(m, Claim)

(* Who wants to be told is granted nothing. *)
Absence(p) == IF Waits(p) /\ own[p].asked = None /\ \E i \in 1..Len(line) : line[i].owner = Id(p) /\ line[i].want = "tell"
              THEN Interval ELSE LongestLease + Interval
Stall(p) == /\ IsQuiet /\ Works(p) /\ own[p].phase # "idle" /\ Spend(Absence(p)) /\ stalled' = stalled \cup {p} /\ absent' = [absent EXCEPT ![p] = now]
            /\ UNCHANGED <<now, ahead, lock, line, arrived, net, own, listening, dead, idle, overtaken>>
Resume(p) == /\ IsQuiet /\ p \in stalled /\ stalled' = stalled \ {p} /\ absent' = [absent EXCEPT ![p] = MaxTime + 1]
             /\ UNCHANGED <<now, ahead, lock, line, arrived, net, own, listening, dead, idle, faults, cost, overtaken>>
(* Its connections end with it, or nobody notices, and it goes on to be counted. *)
Die(p) == /\ IsQuiet /\ Works(p) /\ own[p].phase # "idle" /\ Spend(Absence(p)) /\ dead' = dead \cup {p}
          /\ absent' = [absent EXCEPT ![p] = now]
          /\ own' = [own EXCEPT ![p] = New] /\ net' = {m \in net : m.kind \in Requests \/ m.owner[1] # p}
          /\ listening' \in {listening, listening \ {p}}
          /\ UNCHANGED <<now, ahead, lock, line, arrived, stalled, idle, overtaken>>
(* It does not listen any more, and then it does, and asks. *)
CutOff(p) == /\ IsQuiet /\ p \notin dead /\ p \in listening /\ own[p].phase # "idle" /\ Spend(0) /\ listening' = listening \ {p}
             /\ net' = {m \in net : ~(m.owner[1] = p /\ m.kind \in {"granted", "told"})}
             /\ UNCHANGED <<now, ahead, lock, line, arrived, own, stalled, absent, dead, idle, overtaken>>
Listen(p) == /\ IsQuiet /\ Works(p) /\ p \notin listening /\ listening' = listening \cup {p}
             /\ LET next == IF Waits(p) THEN AsksAgain(own[p]) ELSE <<own[p], "">> IN
                /\ own' = [own EXCEPT ![p] = Asking(next[1], next[2])]
                /\ net' = net \cup IF next[2] = "" THEN {} ELSE Request(p, next[1], next[2])
             /\ UNCHANGED <<now, ahead, lock, line, arrived, stalled, absent, dead, idle, faults, cost, overtaken>>
(* The line is lost, or parts of it. *)
LoseLine == /\ IsQuiet /\ line # <<>> /\ Spend(Interval)
            /\ line' \in {<<>>} \cup {[line EXCEPT ![i].whole = FALSE] : i \in 1..Len(line)}
            /\ arrived' = SelectSeq(arrived, LAMBDA o : \E i \in 1..Len(line') : line'[i].owner = o /\ line'[i].whole)
            /\ UNCHANGED <<now, ahead, lock, net, own, listening, stalled, absent, dead, idle, overtaken>>
(* A replica is promoted.  It has a place that was left, or used up. *)
Promote(p) == LET spent == [Place([Message("enter", <<p, own[p].number - 1>>, now) EXCEPT !.lease = LongestLease, !.want = "grant"]) EXCEPT !.nonce = 0] IN
              /\ IsQuiet /\ own[p].number > 1 /\ Works(p) /\ Holder # spent.owner /\ ~IsIn(spent.owner, line) /\ Spend(Interval)
              /\ line' = <<spent>> \o line /\ arrived' = <<spent.owner>> \o arrived
              /\ UNCHANGED <<now, ahead, lock, net, own, listening, stalled, absent, dead, idle, overtaken>>
(* The server's clock is set, while nobody has a lease. *)
SetClock == /\ ahead = 0 /\ IsQuiet /\ Spend(0) /\ ahead' = 1
            /\ UNCHANGED <<now, lock, line, arrived, net, own, listening, stalled, absent, dead, idle, overtaken>>

(* Nobody keeps a lock that is not renewed until the very end of its lease. *)
HasToAct(p) == \/ IsUnanswered(p) /\ now > own[p].asked + Timeout
               \/ Waits(p) /\ now >= own[p].due /\ ~IsAsking(p)
               \/ Holds(p) /\ now + 1 >= own[p].until
               \/ p \notin listening
               \/ \E m \in net : m.owner[1] = p /\ m.kind \notin Requests /\ ~m.late
(* Nobody will take notice of it. *)
IsOver(m) == \/ IsExpired(m, now + 1)
             \/ /\ m.owner # Id(m.owner[1]) /\ Holder # m.owner /\ ~IsIn(m.owner, line)
                /\ \A other \in net : other.owner = m.owner => other.kind # "enter"

IsIdle == (\E p \in Processes : Works(p) /\ Waits(p)) /\ ~\E p \in Processes : Believes(p)

Tick == /\ now < MaxTime /\ now' = now + 1 /\ IsQuiet /\ \A p \in Processes : Works(p) => ~HasToAct(p)
        /\ \E p \in Processes : own[p].phase # "idle"
        /\ idle' = IF IsIdle THEN idle + 1 ELSE 0
        /\ lock' = IF lock.owner # Nobody THEN (IF lock.until <= now + 1 THEN Free(Untold) ELSE lock)
                   ELSE IF lock.until = Precede THEN Free(Over) ELSE lock
        /\ net' = {m \in net : ~IsOver(m)}
        /\ UNCHANGED <<ahead, line, arrived, own, listening, stalled, absent, dead, faults, cost, overtaken>>

(* One a line: TLC counts these by their place alone. *)
Next == \/ Tick \/ LoseLine \/ SetClock
        \/ \E p \in Processes : Wait(p) \/ Change(p) \/ Keep(p) \/ GiveUp(p) \/ GiveBack(p) \/ Resend(p) \/ Abandon(p)
        \/ \E p \in Processes : Stall(p) \/ Resume(p) \/ Die(p) \/ CutOff(p) \/ Listen(p) \/ Promote(p)
        \/ \E m \in net : Expire(m)
        \/ \E m \in net : Execute(m)
        \/ \E m \in net : Refuse(m)
        \/ \E m \in net : Earlier(m)
        \/ \E m \in net : Delay(m)
        \/ \E m \in net : Hear(m)
Spec == Init /\ [][Next]_vars

Symmetric == Permutations(Processes)

------------------------------------------------------------------------------
(* Promises *)

(* Short leases count on the server's clock. *)
IsExcepted(p) == own[p].byClock /\ ahead > 0
Counts(p) == Believes(p) /\ ~IsExcepted(p)

(* Two that believe by their own clocks never overlap. *)
OneBelieves == \A p, q \in Processes : Counts(p) /\ Counts(q) => p = q
(* What a process believes is no more than what the server holds for it.  So no body loses its lock within its lease. *)
BeliefIsCovered == \A p \in Processes : Counts(p) => Holder = Id(p) /\ own[p].until <= lock.until
(* A body that begins with a message has two thirds of the lease that its caller wants. *)
BodiesHaveTime == \A p \in Processes : ~own[p].short
(* It counts on no more than this lease, and holds the lock for no longer, or for the shortest lease that is granted. *)
LeasesAreWanted == \A p \in Processes : ~own[p].long
(* While nothing goes wrong, the lock is in use as long as somebody waits. *)
NobodyWaitsInVain == idle <= cost
(* Whoever comes, or comes back after a release, is behind those who wait. *)
NobodyIsOvertaken == ~overtaken
(* Whoever owes a refresh is granted nothing, nor is a process whose connections have ended.  Places lapse.  A late       *)
(* request keeps a place once more.                                                                                       *)
TheAbsentMakeWay == \A p \in Processes : absent[p] <= MaxTime =>
  LET late == (faults - 1) * WaiterTimeout since == absent[p] + late IN
  /\ p \notin listening => \A i \in 1..Len(line) : line[i].owner[1] = p => line[i].lapses <= since + WaiterTimeout
  /\ Holder # Nobody /\ Holder[1] = p => lock.until <= since + LongestLease + IF p \in listening THEN (2 * WaiterTimeout) \div 3 - 1 ELSE 0
==============================================================================
