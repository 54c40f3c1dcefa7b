-------------------------------- MODULE Trace --------------------------------
(***************************************************************************)
(* Histories of the simulation, checked step by step against Lease, Tokens *)
(* and LineServer.  A trace has the steps of one lock; times are           *)
(* microseconds of each machine's own clock.  Each step must be a step of  *)
(* Lease, with what the code has sent and answered, tokens must be those   *)
(* of Tokens, and whoever is granted the lock the first place of its line. *)
(* A process believes that by the rule of Line.                            *)
(***************************************************************************)
EXTENDS Lease, Tokens, Sequences, TLC, TraceData

VARIABLES t,        \* which trace
          i,        \* its next step
          uses,     \* of each owner: the calls whose bodies run
          line,     \* the places in the line of the lock, as in LineServer, with the tokens that they want to reserve
          waits,    \* of each owner: its last request to enter, as in Line, and the grants to it
          blocks,   \* of each owner: the tokens that the server has given it, with those reserved for hand-offs
          told,     \* until when each caller counts on the lock
          given     \* of each owner: the token of the latest body; 0: none

traceVars == <<vars, tokenVars, t, i, uses, line, waits, blocks, given, told>>

(* How the server serves the line, and when a process believes a grant. Of Line, what is about places and claims alone. *)
Line == INSTANCE Line WITH Processes <- {}, Claim <- 1000000, LeaseTime <- 0, WaiterTimeout <- 0, Timeout <- 0,
  Interval <- 0, MaxIds <- 0, MaxTime <- 0, MaxFaults <- 0, own <- waits, arrived <- <<>>, net <- {}, stalled <- {},
  died <- <<>>, idle <- 0, faults <- 0, overtaken <- FALSE
Claim == 1000000

(* <<process, number, commandTimeout>> *)
ProcessOf(o) == o[1]
TimeoutIn(o) == o[3]
Unowned == <<0, 0, 0>>
LessMargin(lease) == lease - lease \div 100 - 2000

Rounding == 3

Steps == Traces[t].steps
S == Steps[i]

TraceInit ==
  /\ t \in 1..Len(Traces) /\ i = 1
  /\ LET first == Traces[t].steps[1] owners == {Traces[t].owners[n] : n \in 1..Len(Traces[t].owners)} IN
     /\ now = first.t /\ clock = first.cl /\ time = first.t
     /\ own = [o \in owners |-> NewOwner] /\ uses = [o \in owners |-> {}]
     /\ waits = [o \in owners |-> [nonce |-> 0, asked |-> 0, grants |-> {}]]
     /\ blocks = [o \in owners |-> {}] /\ told = {} /\ given = [o \in owners |-> 0]
  /\ lock = [owner |-> Nobody, until |-> 0] /\ requests = {} /\ answers = {} /\ line = <<>>
  /\ last = 0 /\ highest = [l \in Locks |-> 0] /\ latest = [token |-> 1, before |-> 0, at |-> 0]

------------------------------------------------------------------------------
(* Time passes on all clocks, and no two of them drift apart by more than 1 %, which is what the margin is for. *)
Abs(n) == IF n < 0 THEN -n ELSE n
Tick ==
  /\ now <= S.t /\ now' = S.t /\ time' = S.t /\ clock' = S.cl
  /\ \A c \in DOMAIN clock : clock[c] <= S.cl[c] /\ Abs((S.cl[c] - clock[c]) - (S.t - now)) <= (S.t - now) \div 100 + 2
  /\ UNCHANGED <<lock, requests, answers, own, last, highest, latest, t, i, uses, line, waits, blocks, given, told>>

(* A lease of several locks ends with the first of them. *)
IsUntil(until, o) == until <= own[o].until + Rounding /\ (S.alone => until >= own[o].until - Rounding)

Sent(copy) == {m \in requests : m.kind = S.kind /\ m.owner = S.o /\ m.sent = S.sent /\ m.copy = copy}
Answered(copy) == {a \in answers : a.request.kind = S.kind /\ a.request.owner = S.o /\ a.request.sent = S.sent /\ a.request.copy = copy}

(* Tokens: what the server has answered is what the clock gives. *)
GrantsAsAnswered == /\ Grant(1, S.seen, S.reserve)
                    /\ latest'.token = S.token /\ last' = S.clock /\ last' - S.token = S.reserved
RaisesOnly == Raise(S.seen) /\ last' = S.clock

(* The line.  A place that has lapsed is as good as none. *)
Places == Line!Living(line)
Place(o) == [owner |-> o, lapses |-> now + S.waits, nonce |-> S.nonce, since |-> now, reserve |-> S.reserve]
Renewed == [n \in 1..Len(Places) |-> IF Places[n].owner = S.o THEN [Places[n] EXCEPT !.lapses = now + S.waits] ELSE Places[n]]
Noted == [n \in 1..Len(Places) |-> IF Places[n].owner = S.o THEN Place(S.o) ELSE Places[n]]
Entered == IF Line!IsIn(S.o, Places) THEN Noted ELSE Append(Places, Place(S.o))
IsFirst(o) == Places # <<>> /\ Head(Places).owner = o

LineAfterExecution ==
  CASE S.kind = "acquire" /\ ~S.ok /\ S.waits > 0 -> Entered
    [] S.kind \in Taking /\ S.ok -> Line!Without(Places, S.o)
    [] OTHER -> Places

(* Whoever enters does not overtake. *)
GoesInTurn == S.kind = "acquire" /\ S.ok /\ S.waits > 0 /\ Holder = Nobody => Line!IsNext(S.o)

(* The first place gets the free lock, for the time of a claim. Its process will use it, or it is the last sign of it. *)
Granted == LET served == Line!Served(line) message == CHOOSE m \in served.told : TRUE IN
  /\ Holder = Nobody /\ IsFirst(S.o) /\ lock' = served.lock /\ line' = served.line
  /\ own' = [own EXCEPT ![S.o].leftAt = IF WillUse(S.o) THEN @ ELSE now, ![S.o].lease = Max(@, Claim)]
  \* With a nonce, a token goes with it.
  /\ S.nonce = message.sent /\ last' = S.clock
  /\ IF S.nonce = 0 THEN UNCHANGED <<tokenVars, waits>> ELSE
     /\ Grant(1, S.seen, Head(Places).reserve)
     /\ waits' = [waits EXCEPT ![S.o].grants = @ \cup {[message |-> message, token |-> latest'.token, end |-> last']}]
  /\ UNCHANGED <<now, clock, requests, answers, uses, blocks, given, told>>

(* Messages say in whole milliseconds how long before the grant the request was executed. *)
Whole(micros) == (micros \div 1000) * 1000
(* By the process's own clock, less the margin for what has passed on the server. *)
Passed(after) == Max(0, LessMargin(after))
AsHeard(m) == [m EXCEPT !.at = Passed(S.after) + LessMargin(Claim) - Claim]

(* A process begins because a message grants it the lock, and counts on it for the time of the claim. *)
Believed == \E grant \in waits[S.o].grants : LET m == AsHeard(grant.message) IN
  /\ CanAsk(S.o) /\ Line!HasNonce(S.o, m)
  /\ S.nonce = m.sent /\ S.after = Whole(grant.message.at) /\ S.token = grant.token /\ S.token + S.reserved = grant.end
  /\ Abs(S.until - Line!EndOfClaim(S.o, m)) <= Rounding /\ Clock(S.o) < S.until
  /\ own' = [own EXCEPT ![S.o].phase = "held", ![S.o].until = S.until, ![S.o].lease = Max(@, S.lease), ![S.o].deadline = 0]
  /\ blocks' = [blocks EXCEPT ![S.o] = @ \cup {<<S.token, S.token + S.reserved>>}]
  /\ UNCHANGED <<now, clock, lock, requests, answers, tokenVars, uses, given, told>>

(* The moment before a request to enter is sent. *)
Asked == IF S.nonce = 0 THEN UNCHANGED waits ELSE waits' = [waits EXCEPT ![S.o].nonce = S.nonce, ![S.o].asked = Clock(S.o)]

Free == [owner |-> Nobody, until |-> 0]
KeepsPlace == /\ S.kept = Line!IsIn(S.o, Places) /\ line' = Renewed
              /\ lock' = IF Holder = Nobody THEN Free ELSE lock
LeavesLine == /\ line' = Line!Without(Places, S.o)
              /\ lock' = IF Holder = S.o \/ (Holder = Nobody /\ IsFirst(S.o)) THEN Free ELSE lock
OfLine(action) == action /\ UNCHANGED <<now, clock, requests, answers, own, tokenVars, uses, blocks, given, told>>

(* A lock that was released is granted before anything else happens. *)
MustBeGranted == lock = Free /\ Places # <<>>

Executed ==
  \E m \in Sent(S.copy) :
    /\ Succeeds(m) = S.ok /\ IsLate(m) = FALSE
    /\ Execute(m) /\ (GoesInTurn = TRUE) /\ line' = LineAfterExecution
    /\ IF S.kind \notin Taking THEN UNCHANGED <<tokenVars, blocks>>
       ELSE IF S.ok THEN GrantsAsAnswered /\ blocks' = [blocks EXCEPT ![S.o] = @ \cup {<<S.token, S.token + S.reserved>>}]
       ELSE RaisesOnly /\ (S.kind = "acquire" => S.holder = Holder) /\ UNCHANGED blocks
    /\ UNCHANGED <<uses, given, told>>

(* What a caller got that had just left is handed on, with the next token of the block.  A call that was made in the body  *)
(* of another one shares its lock, or gets it after that has ended.                                                        *)
IsNextToken(o, token) ==
  IF given[o] = 0 THEN \E b \in blocks[o] : token = b[1] \/ (token = b[1] + 1 /\ token <= b[2])
  ELSE \/ S.within /\ token = given[o]
       \/ uses[o] = {} /\ token > given[o] /\ \E b \in blocks[o] : b[1] < token /\ token <= b[2]

(* A caller gets the lock: by the answer to a request, by a hand-off in the process, or by re-entry. *)
Begin ==
  /\ IsCurrent(S.o) /\ IsUntil(S.until, S.o)
  /\ S.call \notin uses[S.o] /\ (S.within \/ uses[S.o] = {}) /\ IsNextToken(S.o, S.token)
  /\ uses' = [uses EXCEPT ![S.o] = @ \cup {S.call}] /\ given' = [given EXCEPT ![S.o] = S.token]
  /\ told' = told \cup {<<S.call, S.until>>}
  /\ UNCHANGED <<vars, tokenVars, blocks>>

(* The process hears of a renewal.  What it knew already is not in the trace. *)
ToldTo(call) == {pair \in told : pair[1] = call}

Confirm == /\ S.call \in uses[S.o] /\ IsCurrent(S.o) /\ IsUntil(S.until, S.o)
           /\ <<S.call, S.until>> \notin told
           /\ told' = (told \ ToldTo(S.call)) \cup {<<S.call, S.until>>}
           /\ UNCHANGED <<vars, tokenVars, uses, blocks, given>>

End == /\ S.call \in uses[S.o] /\ uses' = [uses EXCEPT ![S.o] = @ \ {S.call}]
       /\ own[S.o].phase = "left" => ToldTo(S.call) = {}
       /\ IsCurrent(S.o) => \A pair \in ToldTo(S.call) : IsUntil(pair[2], S.o)
       /\ UNCHANGED <<vars, tokenVars, blocks, given, told>>

(* The process has noticed that the lease is lost. *)
Lost == /\ S.call \in uses[S.o] /\ own[S.o].phase = "left" /\ ToldTo(S.call) # {}
        /\ told' = told \ ToldTo(S.call) /\ UNCHANGED <<vars, tokenVars, uses, blocks, given>>

LoseEverything == /\ IF Holder = Nobody THEN UNCHANGED vars ELSE ForceRelease
                  /\ LoseClock /\ line' = <<>> /\ UNCHANGED <<uses, blocks, given, told>>

Crashed == Crash(S.c) /\ uses' = [o \in DOMAIN uses |-> IF ClientOf(o) = S.c THEN {} ELSE uses[o]]
           /\ UNCHANGED <<tokenVars, blocks, given, told>>

(* Every request was executed, refused or lost, every answer was read or lost, and nobody holds anything. *)
Finish == /\ requests = {} /\ answers = {}
          /\ \A o \in DOMAIN own : uses[o] = {} /\ own[o].phase \in {"new", "left", "dead"}
          /\ UNCHANGED <<vars, tokenVars, uses, blocks, given, told>>

(* So two parts of the process may release the owner of a place. *)
ReleasesAgain == LET again == Request("release", S.o, S.o, 0, 0) IN
  /\ S.placed /\ own[S.o].phase = "left" /\ own[S.o].settled /\ again \notin requests /\ requests' = requests \cup {again}
  /\ UNCHANGED <<now, clock, lock, answers, own>>

OfLease(action) == action /\ UNCHANGED <<tokenVars, uses, blocks, given, told>>

Step ==
  CASE S.e = "acquire"  -> OfLease(Acquire(S.o, S.lease, S.deadline)) /\ Asked
    [] S.e = "transfer" -> uses[S.from] = {} /\ OfLease(Transfer(S.from, S.o, S.lease, S.deadline))
    [] S.e = "renew"    -> OfLease(Renew(S.o, S.lease))
    [] S.e = "release"  -> OfLease(SendRelease(S.o) \/ ReleasesAgain)
    [] S.e = "resend"   -> OfLease(Resend([kind |-> S.kind, owner |-> S.o, from |-> S.from, lease |-> S.lease,
                                           sent |-> S.sent, deadline |-> S.deadline, copy |-> 1]))
    [] S.e = "execute"  -> Executed
    [] S.e = "grant"    -> Granted
    [] S.e = "believe"  -> Believed
    [] S.e = "keep"     -> OfLine(KeepsPlace)
    [] S.e = "leave"    -> OfLine(LeavesLine)
    [] S.e = "late"     -> \E m \in Sent(S.copy) : IsLate(m) /\ OfLease(Execute(m))
    [] S.e = "lose"     -> \E m \in Sent(S.copy) : OfLease(Lose(m))
    [] S.e = "refused"  -> \E m \in Sent(1) : OfLease(Refused(m))
    [] S.e = "read"     -> \E a \in Answered(S.copy) : a.ok = S.ok /\ OfLease(Read(a))
    [] S.e = "unread"   -> \E a \in Answered(S.copy) : OfLease(LoseAnswer(a))
    [] S.e = "give up"  -> own[S.o].sent = S.sent /\ OfLease(GiveUp(S.o))
    [] S.e = "begin"    -> Begin
    [] S.e = "confirm"  -> Confirm
    [] S.e = "end"      -> End
    [] S.e = "lost"     -> Lost
    [] S.e = "crash"    -> Crashed
    [] S.e = "force"    -> Holder = S.o /\ OfLease(ForceRelease)
    [] S.e = "data lost" -> LoseEverything
    \* Other locks draw from the same clock.
    [] S.e = "other grant" -> /\ Grant(2, S.seen, S.reserve) /\ latest'.token = S.token /\ last' = S.clock
                              /\ UNCHANGED <<vars, uses, blocks, given, told>>
    [] S.e = "other raise" -> RaisesOnly /\ UNCHANGED <<vars, uses, blocks, given, told>>
    [] S.e = "finish"   -> Finish

(* A place whose removal was not answered is released in the background, where no acquisition may ever have been in doubt. *)
GivesUpPlace == /\ S.placed /\ own' = [own EXCEPT ![S.o] = Leave(S.o, Doubt(S.o))]
                /\ OfLease(UNCHANGED <<now, clock, lock, requests, answers>>) /\ UNCHANGED <<t, i, line, waits>>

(* What the process does without a message: it lets go before it releases, and notices what it has lost. *)
LetsGo == /\ S.e \in {"release", "lost"} /\ own[S.o].phase = "held"
          /\ IF S.e = "release" THEN uses[S.o] = {} ELSE own[S.o].removed \/ \E pair \in ToldTo(S.call) : Clock(S.o) >= pair[2] - Rounding
          /\ OfLease(Release(S.o)) /\ UNCHANGED <<t, i, line, waits>>

IsDone == i > Len(Steps)

(* A state that breaks a promise has no successor. *)
TokensGrow == latest.token > latest.before
(* Nobody uses what a place was granted: the claim may be longer than its lease. *)
MayKeepClaim(o) == Holder = o /\ lock.until <= own[o].leftAt + Claim
FreeInTimeOrClaim == IF FreeInTime THEN TRUE ELSE MayKeepClaim(Holder)
Promises == BeliefIsCovered /\ FreeInTimeOrClaim /\ NothingIsLeft /\ TokensGrow

TraceNext ==
  /\ Promises /\ (MustBeGranted => S.e \in {"grant", "unread"})
  /\ IF IsDone THEN UNCHANGED traceVars
     ELSE IF now # S.t \/ clock # S.cl THEN Tick
     ELSE IF S.e \in {"release", "lost"} /\ own[S.o].phase = "held" THEN LetsGo
     ELSE IF S.e = "release" /\ own[S.o].phase = "new" THEN GivesUpPlace
     ELSE /\ Step /\ i' = i + 1 /\ UNCHANGED t
          /\ S.e \notin {"execute", "grant", "keep", "leave", "data lost"} => UNCHANGED line
          /\ S.e \notin {"acquire", "grant"} => UNCHANGED waits

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

(* An invariant, so that it is evaluated in each state: says what became of each trace. *)
Report == IF IsDone THEN PrintT(<<"accepted", t>>) ELSE ENABLED TraceNext \/ PrintT(<<"refused", t, i>>)
==============================================================================
