----------------------------- MODULE TraceQuorum -----------------------------
(***************************************************************************)
(* Histories of a lock on several nodes, checked step by step: what each   *)
(* node does with each request, what an attempt or a renewal knows by the  *)
(* answers of the nodes, and when it counts as granted is what Quorum      *)
(* says.  Its promises hold between two steps, by each process's own       *)
(* clock, until a node has forgotten its data.                             *)
(*                                                                         *)
(* Times are microseconds: `now`, that of each node, that of each process. *)
(***************************************************************************)
EXTENDS Quorum, Sequences, TraceData

VARIABLES t,        \* which trace
          i,        \* its next step
          local,    \* what the clock of each process shows
          times,    \* what the clock of each node shows
          requests, \* copies on their way to a node: the step that sent it, and which copy
          answers,  \* answers that may still be read
          newest,   \* the number of the last request
          lease,    \* of each owner
          round,    \* of each owner: its last renewal
          got,      \* of each owner and node: the token that the node has answered
          raised,   \* of each owner: the nodes that have answered that they know its token
          stage,    \* of each owner id: "none", an "attempt", "granted", a "body", or "over"
          dead,     \* the processes that have died
          owed      \* owners and nodes: what may be granted there, and is not released yet

specVars == <<now, held, clock, phase, sent, to, grants, token, belief, highest, forgotten, wrong>>
traceVars == <<specVars, t, i, local, times, requests, answers, newest, lease, round, got, raised, stage, dead, owed>>

Steps == Traces[t].steps
S == Steps[i]
IsDone == i > Len(Steps)
Unowned == 0
AllOwners == 1..MostOwners
TracedNodes == 1..3
NoSymmetry == {} \* TLC would count the permutations of all owners
Rounding == 3
ProcessOf(o) == Traces[t].processes[o]
LocalTime(o) == local[ProcessOf(o)]
LessMargin(time) == time - time \div 100 - 2000
EndOf(o) == sent[o] + LessMargin(lease[o])
BelievesByItsClock(o) == belief[o] > 0 /\ belief[o] > LocalTime(o)
HolderByItsClock(n) == IF held[n].until > times[n] THEN held[n].owner ELSE Nobody

Nothing == [n \in Nodes |-> 0]
TraceInit == /\ t \in 1..Len(Traces) /\ i = 1 /\ Init /\ requests = {} /\ answers = {} /\ newest = 0
             /\ local = Traces[t].steps[1].cl /\ times = Traces[t].steps[1].nt /\ lease = [o \in Owners |-> 0]
             /\ stage = [o \in Owners |-> "none"] /\ dead = {} /\ owed = {} /\ round = [o \in Owners |-> 0]
             /\ got = [o \in Owners |-> Nothing] /\ raised = [o \in Owners |-> {}]

Abs(n) == IF n < 0 THEN -n ELSE n
IsInStep(before, after) == before <= after /\ Abs((after - before) - (S.t - now)) <= (S.t - now) \div 100 + 2
PassTime == /\ now <= S.t /\ now' = S.t /\ local' = S.cl /\ times' = S.nt
            /\ \A p \in DOMAIN local : IsInStep(local[p], S.cl[p]) /\ \A n \in Nodes : IsInStep(times[n], S.nt[n])
            /\ UNCHANGED <<held, clock, phase, sent, to, grants, token, belief, highest, forgotten, wrong>>
            /\ UNCHANGED <<t, i, requests, answers, newest, lease, round, got, raised, stage, dead, owed>>

KeepsNodes == UNCHANGED <<held, clock, forgotten>>
KeepsOwners == UNCHANGED <<phase, sent, grants, token, belief, highest, wrong, lease, round, got, raised>>
KeepsRequests == UNCHANGED <<to, requests, answers, newest>>
------------------------------------------------------------------------------
(* Owners: an attempt, renewals, and their end *)

IsAlive(p) == p \notin dead
Becomes(next) == stage' = [stage EXCEPT ![S.o] = next]
Asked == /\ phase[S.o] = "new" /\ IsAlive(ProcessOf(S.o)) /\ phase' = [phase EXCEPT ![S.o] = "asks"]
         /\ Becomes("attempt") /\ sent' = [sent EXCEPT ![S.o] = LocalTime(S.o)]
         /\ lease' = [lease EXCEPT ![S.o] = S.lease]
         /\ UNCHANGED <<grants, token, belief, highest, wrong, round, got, raised>>
Renewed == /\ Renews(S.o) /\ IsAlive(ProcessOf(S.o)) /\ S.round > round[S.o] /\ round' = [round EXCEPT ![S.o] = S.round]
           /\ sent' = [sent EXCEPT ![S.o] = LocalTime(S.o)] /\ grants' = [grants EXCEPT ![S.o] = {}]
           /\ UNCHANGED <<phase, token, belief, highest, wrong, lease, got, raised>>
(* Enough of the nodes that granted the lock know its token. *)
AgreedOn(o) == {n \in grants[o] : got[o][n] = token[o] \/ n \in raised[o]}
Granted == /\ phase[S.o] \in {"asks", "agrees"} /\ IsMajority(AgreedOn(S.o)) /\ phase' = [phase EXCEPT ![S.o] = "agrees"]
           /\ stage[S.o] = "attempt" /\ Becomes("granted")
           /\ UNCHANGED <<sent, grants, token, belief, highest, wrong, lease, round, got, raised>>
IsUntil == Abs(S.until - EndOf(S.o)) <= Rounding
OfOwner(action) == action /\ UNCHANGED <<lease, round, got, raised, requests, answers, newest>>
Begun == /\ OfOwner(Begin(S.o)) /\ stage[S.o] = "granted" /\ Becomes("body") /\ IsUntil
         /\ EndOf(S.o) > LocalTime(S.o) /\ S.token = token[S.o]
Confirmed == OfOwner(Confirm(S.o)) /\ IsUntil /\ UNCHANGED stage
HasLeft(o) == phase[o] = "left"
Gone == IF HasLeft(S.o) THEN UNCHANGED specVars /\ OfOwner(TRUE) ELSE OfOwner(Go(S.o))
AttemptFailed == stage[S.o] = "attempt" /\ Becomes("over") /\ Gone
BodyEnded == stage[S.o] = "body" /\ Becomes("over") /\ Gone
Lost == Renews(S.o) /\ Gone /\ UNCHANGED stage /\ (belief[S.o] > LocalTime(S.o) + Rounding => ~IsMajority(grants[S.o]))
OfProcess(p) == {o \in 1..Len(Traces[t].processes) : ProcessOf(o) = p}
Crashed == LET ended == {o \in OfProcess(S.p) : phase[o] \in {"asks", "agrees", "holds"}} IN
  /\ phase' = [o \in Owners |-> IF o \in ended THEN "left" ELSE phase[o]]
  /\ belief' = [o \in Owners |-> IF o \in ended THEN 0 ELSE belief[o]]
  /\ IsAlive(S.p) /\ dead' = dead \cup {S.p} /\ UNCHANGED stage
  /\ UNCHANGED <<sent, grants, token, highest, wrong, lease, round, got, raised>> /\ KeepsNodes /\ KeepsRequests

------------------------------------------------------------------------------
(* Requests *)

Of(messages) == {m \in messages : m.step.id = S.id /\ m.copy = S.copy}
(* A node that does not have the lock of a holder is asked for it again, after a majority has renewed it. *)
MaySend ==
  CASE S.kind = "acquire" -> \/ phase[S.o] = "asks" /\ LocalTime(S.o) = sent[S.o] /\ S.n \notin to[S.o]
                             \/ Renews(S.o) /\ Enough(S.o)
    [] S.kind = "renew"   -> S.round <= round[S.o] /\ (S.round = round[S.o] => LocalTime(S.o) >= sent[S.o])
    [] S.kind = "raise"   -> /\ phase[S.o] \in {"asks", "agrees"} /\ Enough(S.o) /\ S.n \in grants[S.o]
                             /\ S.token = token[S.o] /\ got[S.o][S.n] < S.token
    [] S.kind = "release" -> phase[S.o] \in {"asks", "agrees", "left"}
(* Commands about one owner are sent to a node in order, each after the answer to the one before. *)
GoesInOrder == S.kind = "raise" \/ \A a \in answers : a.step.o # S.o \/ a.step.n # S.n \/ a.step.kind = "raise"
(* An attempt that releases what it has got has failed. *)
PhaseAfter == CASE S.kind = "raise" -> "agrees" [] S.kind = "release" -> "left" [] OTHER -> phase[S.o]
Sent == LET m == [step |-> [S EXCEPT !.e = "send"], copy |-> 1] IN
  /\ S.id > newest /\ newest' = S.id /\ S.p = ProcessOf(S.o) /\ IsAlive(S.p) /\ MaySend /\ GoesInOrder
  /\ owed' = CASE S.kind = "acquire" -> owed \cup {<<S.o, S.n>>}
               [] S.kind = "release" -> owed \ {<<S.o, S.n>>}
               [] OTHER -> owed
  /\ requests' = requests \cup {m} /\ to' = [to EXCEPT ![S.o] = @ \cup {S.n}]
  /\ phase' = [phase EXCEPT ![S.o] = PhaseAfter]
  /\ UNCHANGED <<sent, grants, token, belief, highest, wrong, lease, round, got, raised, answers>> /\ KeepsNodes
Resent == /\ requests' = requests \cup {[step |-> [S EXCEPT !.e = "send"], copy |-> S.copy]}
          /\ UNCHANGED <<to, answers, newest>> /\ KeepsOwners /\ KeepsNodes
IsTooLate(m) == m.step.deadline > 0 /\ times[m.step.n] > m.step.deadline
Drops == /\ \E m \in Of(requests) : requests' = requests \ {m} /\ owed' = owed \ {<<m.step.o, m.step.n>>}
         /\ UNCHANGED <<to, answers, newest>>
         /\ KeepsOwners /\ KeepsNodes
TooLate == (\E m \in Of(requests) : IsTooLate(m)) /\ Drops

(* Leases end in whole milliseconds. *)
Whole(micros) == (micros \div 1000) * 1000
Takes(n, o, time) == held' = [held EXCEPT ![n] = [owner |-> o, until |-> Whole(times[n]) + time]]
Knows(n) == clock' = [clock EXCEPT ![n] = S.clock]
Acquires(m) ==
  /\ S.ok = (Holder(m.n) \in {Nobody, m.o}) /\ Knows(m.n)
  /\ IF S.ok THEN Takes(m.n, m.o, m.lease) /\ S.token > clock[m.n]
          \* One script draws for as many acquisitions as it is asked for.
          /\ S.reserve = 0 /\ S.token = S.clock - S.count + 1 + S.n /\ S.n \in 0..S.count - 1
     ELSE UNCHANGED held /\ S.clock >= clock[m.n]
Executes(m) ==
  CASE m.kind = "acquire" -> Acquires(m) /\ UNCHANGED forgotten
    [] m.kind = "renew"   -> /\ S.ok = (Holder(m.n) = m.o) /\ UNCHANGED <<clock, forgotten>>
                             /\ IF S.ok THEN Takes(m.n, m.o, m.lease) ELSE UNCHANGED held
    [] m.kind = "release" -> /\ S.ok = (Holder(m.n) = m.o) /\ UNCHANGED <<clock, forgotten>>
                             /\ IF S.ok THEN MayRelease(m.o) /\ held' = [held EXCEPT ![m.n] = Free] ELSE UNCHANGED held
    [] m.kind = "raise"   -> S.ok /\ Knows(m.n) /\ S.clock = Max(clock[m.n], m.token) /\ UNCHANGED <<held, forgotten>>
(* The node's own view afterwards is that of the code. *)
IsAsSeen(n) == {S.holders[k] : k \in 1..Len(S.holders)} = (IF held'[n].until > times[n] THEN {held'[n].owner} ELSE {})
TokenIn(m) == IF m.kind = "acquire" /\ S.ok THEN S.token ELSE 0
Executed == \E m \in Of(requests) :
  \* A node may answer "busy" without looking at the time.
  /\ (IsTooLate(m) => ~S.ok /\ m.step.kind = "acquire") /\ Executes(m.step) /\ IsAsSeen(m.step.n) /\ requests' = requests \ {m}
  /\ owed' = CASE m.step.kind = "acquire" /\ S.ok -> owed \cup {<<m.step.o, m.step.n>>}
               [] m.step.kind = "release" -> owed \ {<<m.step.o, m.step.n>>}
               [] OTHER -> owed
  /\ answers' = answers \cup {[step |-> m.step, copy |-> m.copy, ok |-> S.ok, token |-> TokenIn(m.step)]}
  /\ UNCHANGED <<to, newest>> /\ KeepsOwners

(* Only a yes to what the owner wants now counts, and tokens until the nodes agree on one. *)
Counts(m) == \/ m.kind = "acquire" /\ phase[m.o] = "asks"
             \/ m.kind = "renew" /\ Renews(m.o) /\ m.round = round[m.o]
Read == \E a \in Of(answers) : LET m == a.step IN
  /\ answers' = answers \ {a} /\ UNCHANGED <<to, requests, newest>> /\ KeepsNodes
  /\ owed' = IF m.kind = "acquire" /\ ~a.ok /\ a.copy = 1 THEN owed \ {<<m.o, m.n>>} ELSE owed
  /\ grants' = IF a.ok /\ Counts(m) THEN [grants EXCEPT ![m.o] = @ \cup {m.n}] ELSE grants
  /\ token' = IF a.ok /\ Counts(m) THEN [token EXCEPT ![m.o] = Max(@, a.token)] ELSE token
  /\ got' = IF a.ok /\ Counts(m) /\ m.kind = "acquire" THEN [got EXCEPT ![m.o][m.n] = a.token] ELSE got
  /\ raised' = IF m.kind = "raise" THEN [raised EXCEPT ![m.o] = @ \cup {m.n}] ELSE raised
  /\ UNCHANGED <<phase, sent, belief, highest, wrong, lease, round>>
Unread == /\ (\E a \in Of(answers) : answers' = answers \ {a}) /\ UNCHANGED <<to, requests, newest>>
          /\ KeepsOwners /\ KeepsNodes

Forgotten == Forget(S.n) /\ UNCHANGED <<lease, round, got, raised, requests, answers, newest>>
Finish == /\ requests = {} /\ answers = {} /\ (\A o \in Owners : phase[o] \in {"new", "left"})
          /\ (\A o \in 1..Len(Traces[t].processes) : stage[o] \in {"granted", "over"} \/ ~IsAlive(ProcessOf(o)))
          (* Whatever a node has granted was given back, or revoked. *)
          /\ (\A n \in Nodes : Holder(n) = Nobody) /\ (\A pair \in owed : ~IsAlive(ProcessOf(pair[1])))
          /\ KeepsNodes /\ KeepsOwners /\ KeepsRequests

InOwner(action) == action /\ KeepsNodes /\ KeepsRequests
Step == CASE S.e = "asks"    -> InOwner(Asked)
          [] S.e = "renews"  -> InOwner(Renewed)
          [] S.e = "begin"   -> Begun
          [] S.e = "confirm" -> Confirmed
          [] S.e = "lost"    -> Lost
          [] S.e = "succeeds" -> InOwner(Granted)
          [] S.e = "fails"   -> AttemptFailed
          [] S.e = "end"     -> BodyEnded
          [] S.e = "crash"   -> Crashed
          [] S.e = "send"    -> Sent
          [] S.e = "resend"  -> Resent
          [] S.e = "late"    -> TooLate
          [] S.e = "lose"    -> Drops
          [] S.e = "execute" -> Executed
          [] S.e = "read"    -> Read
          [] S.e = "unread"  -> Unread
          [] S.e = "forget"  -> Forgotten
          [] S.e = "finish"  -> Finish
          [] S.e = "start"   -> InOwner(KeepsOwners)
          [] OTHER -> FALSE

(* A state that breaks a promise has no successor. *)
Promises == OneBelieves /\ BeliefIsCovered /\ TokensGrow
TraceNext ==
  /\ Promises
  /\ IF IsDone THEN UNCHANGED traceVars
     ELSE IF now # S.t \/ local # S.cl \/ times # S.nt THEN PassTime
     ELSE /\ Step /\ i' = i + 1 /\ UNCHANGED <<now, t, local, times>>
          /\ (S.e # "crash" => UNCHANGED dead)
          /\ (S.e \notin {"send", "execute", "read", "late", "lose"} => UNCHANGED owed)
          /\ (S.e \notin {"asks", "succeeds", "begin", "fails", "end"} => UNCHANGED stage)

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

(* An invariant, so that it is evaluated in each state: says what became of each trace. *)
Report == IF IsDone THEN PrintT(<<"accepted", t>>) ELSE ENABLED TraceNext \/ PrintT(<<"refused", t, i>>)
==============================================================================
