---------------------------- MODULE TraceSeveral ----------------------------
(***************************************************************************)
(* Histories of a few exclusive locks, some of whose callers want several  *)
(* at once, checked step by step.  A call for several does what Several    *)
(* says: `own` and `left` are what that call knows, and has to release.    *)
(* The promises of Several hold between two steps.                         *)
(*                                                                         *)
(* A place in line is a request that is on its way until the lock is free: *)
(* in Several, whoever waits asks then.                                    *)
(***************************************************************************)
EXTENDS Several, Sequences, TraceData

VARIABLES t, i, clock, requests, answers, used, known, told, \* as in TraceRequests
          deadlines, \* of each owner: until when a request may take something for it
          newest,    \* the number of the last request
          ours       \* owners that calls for several names have used, but for those that calls for one name have got

Queue == INSTANCE TraceRequests
requestVars == <<requests, answers, used, known, told>>
serverVars == <<held, late>>
callerVars == <<own, left, some, ours>>
unusedVars == <<inside, copies, faults, stuck>>
traceVars == <<now, serverVars, callerVars, unusedVars, requestVars, deadlines, newest, t, i, clock>>

S == Queue!S
Unowned == 0
(* How early and how late a timer rings, and a bit more. *)
Early == 1000
LateBy == 5000

TracedNames == {1, 2, 3}
AllCallers == 1..MostCallers
TracedOwner(c, o) == o
WantedIn(c) == {Traces[t].wants[c][n] : n \in 1..Len(Traces[t].wants[c])}
NameOf(o) == Traces[t].names[o]
TimeOf(c) == clock[Traces[t].callers[c]]
Longest(c) == Traces[t].longest[c]
BelievesByItsClock(c, n) == own[c].got[n] > 0 /\ own[c].got[n] > TimeOf(c)
IsOfQueues(o) == o = Nobody \/ o \notin ours

Gone == [New EXCEPT !.phase = "left"]
TraceInit == /\ Queue!RequestsInit /\ now = Traces[t].steps[1].t /\ held = [n \in Names |-> Free] /\ late = {}
             /\ own = [c \in Callers |-> Gone] /\ left = {} /\ some = FALSE /\ ours = {}
             /\ deadlines = [o \in Queue!AllOwners |-> -1] /\ newest = 0
             /\ inside = 0 /\ copies = 0 /\ faults = 0 /\ stuck = 0

(* Nobody may hold names while it waits for longer than the bound. *)
IsInTime(c, time) == own[c].phase = "holds" /\ Got(own[c]) # {} => time <= own[c].over + LateBy
PassTime ==
  /\ Queue!Passes(now) /\ now' = S.t /\ \A c \in 1..Len(Traces[t].callers) : IsInTime(c, S.cl[Traces[t].callers[c]])
  /\ held' = [n \in Names |-> IF held[n].until > S.t THEN held[n] ELSE Free] /\ late' = {m \in late : ~IsLate(m, S.t)}
  /\ UNCHANGED <<callerVars, unusedVars, requestVars, deadlines, newest, t, i>>

------------------------------------------------------------------------------
(* The server *)

KeepsServer == UNCHANGED serverVars
WithoutPlace(o) == {m \in late : m.owner # o}
Place(m, o) == [name |-> m.n, owner |-> o, sent |-> Queue!Whole(now) + m.waits]
HasPlace(o) == \E m \in late : m.owner = o
(* What an owner was granted in line is not shortened by its acquisition. *)
NotShorter(m) == Queue!Later(Queue!Whole(now) + m.lease, IF Holder(m.n) = m.o THEN held[m.n].until ELSE 0)
(* A free name may be left to one who was told of it, because the server does not know whether its process listens. *)
IsLeft(m) == m.waits > 0 /\ Holder(m.n) = Nobody /\ \E p \in late : p.name = m.n /\ p.owner # m.o
Acquires(m) ==
  /\ IF IsLeft(m) THEN TRUE ELSE S.ok = IsFreeFor(m.o, m.n)
  /\ IF S.ok THEN Lock(m.o, m.n, NotShorter(m)) /\ late' = WithoutPlace(m.o)
     ELSE UNCHANGED held /\ late' = IF m.waits > 0 THEN WithoutPlace(m.o) \cup {Place(m, m.o)} ELSE late
Renews(m) == /\ S.ok = (Holder(m.n) = m.o) /\ UNCHANGED late
             /\ IF S.ok THEN Lock(m.o, m.n, Queue!Whole(now) + m.lease) ELSE UNCHANGED held
Releases(m) == S.ok = (Holder(m.n) = m.o) /\ Frees(m.o, m.n) /\ UNCHANGED late
(* A hand-over in one process: a release and an acquisition in one step. *)
Transfers(m) == /\ S.ok = (Holder(m.n) \in {m.from, m.o})
                /\ IF S.ok THEN Lock(m.o, m.n, Queue!Whole(now) + m.lease) /\ late' = WithoutPlace(m.o) ELSE KeepsServer
Keeps(m) == /\ \A n \in 1..Len(m.owners) : (S.kept[n] = 1) = HasPlace(m.owners[n])
            /\ late' = {IF \E n \in 1..Len(m.owners) : m.owners[n] = p.owner THEN Place(m, p.owner) ELSE p : p \in late}
            /\ UNCHANGED held
Leaves(m) == Frees(m.o, m.n) /\ late' = WithoutPlace(m.o)
(* A free name goes to one who waits for it. *)
Grants == Holder(S.n) = Nobody /\ HasPlace(S.o) /\ S.until > now /\ Lock(S.o, S.n, S.until) /\ late' = WithoutPlace(S.o)

Serves(m) ==
  CASE m.kind = "acquire"  -> Acquires(m)
    [] m.kind = "renew"    -> Renews(m)
    [] m.kind = "release"  -> Releases(m)
    [] m.kind = "transfer" -> Transfers(m)
    [] m.kind = "keep"     -> Keeps(m)
    [] m.kind = "leave"    -> Leaves(m)

(* The server's own view afterwards is that of the code. *)
IsAsSeen(n) ==
  /\ {S.holders[k] : k \in 1..Len(S.holders)} = (IF held'[n].until > now THEN {held'[n].owner} ELSE {})
  /\ {S.line[k] : k \in 1..Len(S.line)} = {m.owner : m \in {p \in late' : p.name = n}}
(* A release counts if nothing that it undoes may still arrive. *)
EndedBy(m) == CASE m.kind = "release" -> {u \in left : u.owner = m.o /\ MayEnd(u)}
                [] m.kind = "transfer" /\ S.ok -> {u \in left : u.owner = m.from /\ MayEnd(u)}
                [] OTHER -> {}
Executed == \E m \in Queue!Of(requests) :
  /\ Queue!Executes(m, now) /\ Serves(m.step) /\ IsAsSeen(m.step.n) /\ left' = left \ EndedBy(m.step)
  /\ UNCHANGED <<own, some, ours, deadlines>>
TooLate == (\E m \in Queue!Of(requests) : Queue!IsLate(m, now)) /\ Queue!Drops /\ KeepsServer

------------------------------------------------------------------------------
(* Requests.  `S.c`: the call for several names that asks; 0: a queue asks, or it takes nothing. *)

IsBeingAsked(o) == \E c \in Callers : own[c].asks # 0 /\ own[c].id[own[c].asks] = o
AskerOf(o) == CHOOSE c \in Callers : own[c].asks # 0 /\ own[c].id[own[c].asks] = o
HasNoUse(o) == \A c \in Callers, n \in Names : own[c].id[n] # o
IsUnderWay(o) == (\E m \in requests' : m.step.o = o) \/ \E a \in answers' : a.step.o = o

(* Every name of every attempt gets an owner id that was not used before. *)
Asks(c) == /\ own[c].phase = "tries" /\ own[c].asks = 0 /\ S.n \in Wanted(c) /\ S.kind = "acquire" /\ S.waits = 0
           /\ S.p = Traces[t].callers[c] /\ used[S.o].place = "new" /\ ours' = ours \cup {S.o}
           /\ own' = [own EXCEPT ![c].id[S.n] = S.o, ![c].asks = S.n, ![c].asked = S.deadline]
(* It is released until the process knows by an answer that it holds nothing. *)
Gives(o) == HasNoUse(o) /\ (o \in ours => used[o].place = "given" \/ \E u \in left : u.owner = o)
AsksOrGives == /\ IF S.c # 0 THEN Asks(S.c) ELSE UNCHANGED <<own, ours>>
               /\ S.kind \in {"release", "transfer"} => Gives(Queue!Gives)
(* Requests are numbered in the order in which they were sent. *)
Sent == /\ S.id > newest /\ newest' = S.id /\ Queue!Send /\ (S.o # 0 => NameOf(S.o) = S.n)
        /\ AsksOrGives /\ UNCHANGED <<left, some>>
        /\ deadlines' = IF S.deadline > 0 THEN [deadlines EXCEPT ![S.o] = Queue!Later(@, S.deadline)] ELSE deadlines

(* What a call knows by the answer.  Copies of a request that was sent again may still arrive. *)
Tells(a) == LET o == a.step.o n == a.step.n until == known'[o].place IN
  CASE a.step.kind = "acquire" /\ IsBeingAsked(o) ->
         LET c == AskerOf(o) s == own[c] IN
         IF a.ok /\ until > TimeOf(c)
         THEN Knows(c, [s EXCEPT !.got[n] = until, !.asks = 0, !.asked = 0]) /\ UNCHANGED left
         ELSE /\ Knows(c, WithoutDoubt(s)) /\ (~a.ok /\ a.copy = 1 => ~IsUnderWay(o))
              /\ left' = IF a.ok \/ a.copy > 1 THEN left \cup InDoubt(c, s) ELSE left
    [] a.step.kind = "renew" /\ (\E c \in Callers : own[c].id[n] = o /\ own[c].got[n] # 0) ->
         LET c == CHOOSE d \in Callers : own[d].id[n] = o IN
         Knows(c, [own[c] EXCEPT !.got[n] = IF until = 0 THEN -1 ELSE until]) /\ UNCHANGED left
    [] OTHER -> UNCHANGED <<own, left>>
Read == Queue!ReadAnswer /\ (\E a \in Queue!Of(answers) : Tells(a)) /\ UNCHANGED <<some, ours, deadlines>>
(* No answer came.  Only if the request was certainly not executed, there is nothing to release. *)
Fails == LET c == AskerOf(S.o) s == own[c] IN
  /\ IsBeingAsked(S.o) /\ UNCHANGED <<some, ours, deadlines, requestVars>> /\ Knows(c, WithoutDoubt(s))
  /\ IF S.doubt THEN left' = left \cup InDoubt(c, s) ELSE ~IsUnderWay(S.o) /\ UNCHANGED left

------------------------------------------------------------------------------
(* Calls for several names.  They give back one name after the other. *)

Comes(c) == own[c] = Gone /\ Knows(c, New) /\ UNCHANGED <<left, some, ours>>
UndoneAt(c, n) == LET o == own[c].id[n] IN Undone(c, n, o, IF used[o].doubts > 0 THEN deadlines[o] ELSE -1)
GivesOne(c) == /\ own[c].phase \in {"tries", "holds"} /\ S.n \in Got(own[c])
               /\ Knows(c, [own[c] EXCEPT !.got[S.n] = 0, !.id[S.n] = 0]) /\ left' = left \cup {UndoneAt(c, S.n)}
               /\ UNCHANGED <<some, ours>>
HasNothing(c) == Got(own[c]) = {} /\ own[c].asks = 0
Waits(c) == /\ own[c].phase = "tries" /\ HasNothing(c) /\ S.n \in Wants(c)
            /\ Knows(c, [WithNothing(own[c], "waits") EXCEPT !.busy = S.n]) /\ UNCHANGED <<left, some, ours>>
Holds(c) == /\ own[c].phase \in {"tries", "holds", "pauses"} /\ HasNothing(c) /\ Longest(c) <= LongestHold
            /\ own[c].phase = "pauses" => TimeOf(c) >= own[c].over - Early
            /\ Knows(c, WithNothing(own[c], "holds")) /\ UNCHANGED <<left, some, ours>>
(* The name may have been handed on in the process, under the same owner id.  Whoever holds names takes them in *)
(* order, and passes on what comes out of turn.                                                                 *)
IsFromQueue(o) == HasNoUse(o) /\ (\A b \in told : b.o # o) /\ used[o].place = "asked"
GetsByWaiting(c) == LET until == known[S.o].place rest == {u \in left : u.owner # S.o} s == own[c] IN
  /\ IsFromQueue(S.o) /\ NameOf(S.o) = S.n /\ until > TimeOf(c) /\ ours' = ours \cup {S.o} /\ UNCHANGED some
  /\ IF s.phase = "pauses" \/ (s.phase = "holds" /\ S.n \notin NextOf(Missing(c)))
     THEN /\ UNCHANGED own
          /\ left' = rest \cup {Undone(c, S.n, S.o, IF used[S.o].doubts > 0 THEN deadlines[S.o] ELSE -1)}
     ELSE /\ (s.phase = "holds" \/ (s.phase = "waits" /\ s.busy = S.n)) /\ left' = rest
          /\ Knows(c, [s EXCEPT !.id[S.n] = S.o, !.got[S.n] = until, !.busy = 0,
                       !.phase = IF @ = "waits" THEN "tries" ELSE @,
                       !.over = IF s.phase = "holds" /\ Got(s) = {} THEN TimeOf(c) + Longest(c) ELSE @])
GivesAll(c, next) == /\ Knows(c, next) /\ left' = left \cup {UndoneAt(c, n) : n \in Got(own[c])}
                     /\ own[c].asks = 0 /\ UNCHANGED <<some, ours>>
IsOverFor(c) == /\ own[c].phase = "holds" /\ Got(own[c]) # {} /\ TimeOf(c) >= own[c].over - Early
                /\ GivesAll(c, [WithNothing(own[c], "pauses") EXCEPT !.over = TimeOf(c) + Longest(c)])
Ends(c) == own[c].phase = "runs" /\ GivesAll(c, Gone)
GoesAway(c) == own[c].phase \notin {"runs", "left"} /\ HasNothing(c) /\ Knows(c, Gone) /\ UNCHANGED <<left, some, ours>>
(* A lease of several names ends with the first of them.  `alone`: it shares none with the scope that it is in. *)
IsUntil(c, until) == /\ \A n \in Wants(c) : until <= own[c].got[n] + Queue!Rounding
                     /\ S.alone => \E n \in Wants(c) : until >= own[c].got[n] - Queue!Rounding
BeginsWith(c) == /\ own[c].phase \in {"tries", "holds"} /\ Missing(c) = {} /\ ~IsStale(c) /\ own[c].asks = 0
                 /\ IsUntil(c, S.until) /\ Knows(c, [own[c] EXCEPT !.phase = "runs", !.over = 0])
                 /\ some' = (some \/ \E n \in Wants(c) : Holder(n) # IdOf(c, own[c].id[n])) /\ UNCHANGED <<left, ours>>
Confirms(c) == own[c].phase = "runs" /\ IsUntil(c, S.until) /\ UNCHANGED callerVars
Loses(c) == /\ own[c].phase = "runs" /\ own[c].got[S.n] < TimeOf(c) + Queue!Rounding
            /\ Knows(c, [own[c] EXCEPT !.got[S.n] = -1]) /\ UNCHANGED <<left, some, ours>>
OfCaller(action) == S.c \in Callers /\ action /\ UNCHANGED <<serverVars, requestVars, deadlines>>

(* A call for one name may get it from a call for several, in the same process. *)
BeginsAlone == /\ Queue!Begin /\ HasNoUse(S.o) /\ left' = {u \in left : u.owner # S.o} /\ ours' = ours \ {S.o}
               /\ UNCHANGED <<own, some, deadlines>>

Finish == /\ requests = {} /\ answers = {} /\ told = {} /\ (\A c \in Callers : own[c] = Gone) /\ late = {}
          /\ \A n \in Names : Holder(n) = Nobody
          /\ (\A u \in left : MayEnd(u)) /\ UNCHANGED <<serverVars, callerVars, requestVars, deadlines>>

Step == CASE S.e = "execute" -> Executed
          [] S.e = "grant"   -> Grants /\ UNCHANGED <<callerVars, requestVars, deadlines>>
          [] S.e = "late"    -> TooLate /\ UNCHANGED <<callerVars, deadlines>>
          [] S.e = "send"    -> Sent /\ KeepsServer
          [] S.e = "read"    -> Read /\ KeepsServer
          [] S.e = "fails"   -> Fails /\ KeepsServer
          [] S.e = "begin"   -> BeginsAlone /\ KeepsServer
          [] S.e = "comes"   -> OfCaller(Comes(S.c))
          [] S.e = "gives"   -> OfCaller(GivesOne(S.c))
          [] S.e = "waits"   -> OfCaller(Waits(S.c))
          [] S.e = "holds"   -> OfCaller(Holds(S.c))
          [] S.e = "got"     -> OfCaller(GetsByWaiting(S.c))
          [] S.e = "over"    -> OfCaller(IsOverFor(S.c))
          [] S.e = "begins"  -> OfCaller(BeginsWith(S.c))
          [] S.e = "confirms" -> OfCaller(Confirms(S.c))
          [] S.e = "loses"   -> OfCaller(Loses(S.c))
          [] S.e = "ends"    -> OfCaller(Ends(S.c))
          [] S.e = "leaves"  -> OfCaller(GoesAway(S.c))
          [] S.e = "finish"  -> Finish
          [] OTHER           -> Queue!OfRequests /\ KeepsServer /\ UNCHANGED <<callerVars, deadlines>>

(* A state that breaks a promise has no successor. *)
Promises == /\ OneBelieves /\ BeliefIsCovered /\ AllOrNone /\ NoCircleOfCallers /\ NothingWhileItWaits /\ NothingIsLeft
            /\ \A b \in told : Queue!Believes(b) => Holder(NameOf(b.o)) = b.o
TraceNext ==
  /\ Promises
  /\ IF Queue!IsDone THEN UNCHANGED traceVars
     ELSE IF now # S.t \/ clock # S.cl THEN PassTime
     ELSE Step /\ (S.e # "send" => UNCHANGED newest) /\ i' = i + 1 /\ UNCHANGED <<now, unusedVars, t, clock>>

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

(* An invariant, so that it is evaluated in each state: says what became of each trace. *)
Report == IF Queue!IsDone THEN PrintT(<<"accepted", t>>) ELSE ENABLED TraceNext \/ PrintT(<<"refused", t, i>>)
==============================================================================
