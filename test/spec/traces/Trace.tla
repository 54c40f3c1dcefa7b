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
          line,     \* the places in the line of the lock, as in LineServer
          left,     \* until when the free lock is left to those who were told; 0: nobody was
          due,      \* why the line has to be served before anything else happens, if it has to
          waits,    \* of each owner: the moments of its requests, by their nonces, as in Line, and what it was granted
          blocks,   \* of each owner: the tokens that the server has given it, with those reserved for hand-offs
          told,     \* until when each caller counts on the lock
          given     \* of each owner: the token of the latest body; 0: none

lineVars == <<line, left, due>>
traceVars == <<vars, tokenVars, t, i, uses, lineVars, waits, blocks, told, given>>

(* <<process, number, commandTimeout>> *)
ProcessOf(o) == o[1]
TimeoutIn(o) == o[3]
Unowned == <<0, 0, 0>>
LessMargin(lease) == lease - lease \div 100 - 2000
HeadStart == 10000
ShortestGrant == 1000000
(* An hour is more than TLC's largest number. *)
LongestGrant == 2147483647

Rounding == 3

Steps == Traces[t].steps
S == Steps[i]

(* The server's clock in whole milliseconds, by which leases end, and places lapse. *)
Whole(micros) == (micros \div 1000) * 1000
(* The time stands still in a script.  Deadlines are compared with it as it is. *)
LateByMicros(m) == m.kind \in Taking /\ time > m.deadline
(* A process estimates the server's clock by one of its last answers, which took no longer than it waits for one.  No two *)
(* clocks drift apart by more than 1 %.  Deadlines are rounded up to 16 ms.                                               *)
ErrorOf(o) == TimeoutOf(o) + 16000
LatestDeadline(o) == now + TimeoutOf(o) + ErrorOf(o)
InTimeAsEstimated(o, deadline) == now + TimeoutOf(o) <= deadline + now \div 100 /\ deadline <= LatestDeadline(o)

(* How the server serves the line.  Times of places are those of the trace. *)
Told == IF line = <<>> \/ left = 0 THEN -1 ELSE IF left <= now THEN 0 ELSE 1
Server == INSTANCE LineServer WITH Processes <- {}, Leases <- {}, Wants <- {}, ShortestGrant <- ShortestGrant,
  LongestGrant <- LongestGrant, Claim <- 0, WaiterTimeout <- 0, Interval <- 0,
  Timeout <- 0, MaxTime <- 0, MaxFaults <- 0,
  ahead <- time - now, arrived <- <<>>, net <- {}, stalled <- {}, absent <- <<>>, dead <- {}, idle <- 0, faults <- 0, cost <- 0,
  overtaken <- FALSE, lock <- IF Holder = Nobody THEN [owner |-> Nobody, until |-> Told] ELSE lock,
  listening <- {S.listening[n] : n \in 1..Len(S.listening)}
(* When a process believes a message, by its own clock. *)
Process == INSTANCE Line WITH Processes <- {}, Leases <- {}, Wants <- {}, ShortestGrant <- ShortestGrant,
  LongestGrant <- LongestGrant, Claim <- 0, WaiterTimeout <- 0, Interval <- 0,
  Timeout <- 0, MaxTime <- 0, MaxFaults <- 0, MaxIds <- 0,
  ahead <- 0, arrived <- <<>>, net <- {}, stalled <- {}, absent <- <<>>, dead <- {}, idle <- 0, faults <- 0, cost <- 0,
  overtaken <- FALSE, own <- waits, listening <- {}, now <- Clock(S.o)

TraceInit ==
  /\ t \in 1..Len(Traces) /\ i = 1
  /\ LET first == Traces[t].steps[1] owners == {Traces[t].owners[n] : n \in 1..Len(Traces[t].owners)} IN
     /\ now = Whole(first.t) /\ clock = first.cl /\ time = first.t
     /\ own = [o \in owners |-> NewOwner] /\ uses = [o \in owners |-> {}]
     /\ waits = [o \in owners |-> [moments |-> {}, grants |-> {}, written |-> 0, reserve |-> 0]]
     /\ blocks = [o \in owners |-> {}] /\ told = {} /\ given = [o \in owners |-> 0]
  /\ lock = [owner |-> Nobody, until |-> 0] /\ requests = {} /\ answers = {} /\ line = <<>> /\ left = 0 /\ due = ""
  /\ last = 0 /\ highest = [l \in Locks |-> 0] /\ latest = [token |-> 1, before |-> 0, at |-> 0]

------------------------------------------------------------------------------
(* Time passes on all clocks, and no two of them drift apart by more than 1 %, which is what the margin is for. *)
Abs(n) == IF n < 0 THEN -n ELSE n
Tick ==
  /\ time <= S.t /\ now' = Whole(S.t) /\ time' = S.t /\ clock' = S.cl
  /\ \A c \in DOMAIN clock : clock[c] <= S.cl[c] /\ Abs((S.cl[c] - clock[c]) - (S.t - time)) <= (S.t - time) \div 100 + 2
  /\ UNCHANGED <<lock, requests, answers, own, last, highest, latest, t, i, uses, lineVars, waits, blocks, given, told>>

(* A lease of several locks ends with the first of them. *)
IsUntil(until, o) == until <= own[o].until + Rounding /\ (S.alone => until >= own[o].until - Rounding)

Sent(copy) == {m \in requests : m.kind = S.kind /\ m.owner = S.o /\ m.sent = S.sent /\ m.copy = copy}
Answered(copy) == {a \in answers : a.request.kind = S.kind /\ a.request.owner = S.o /\ a.request.sent = S.sent /\ a.request.copy = copy}

(* Tokens: what the server has answered is what the clock gives. *)
GrantsAsAnswered == /\ GrantInBatch(1, S.seen, S.reserve, S.count, S.n)
                    /\ latest'.token = S.token /\ last' = S.clock /\ highest'[1] = Max(highest[1], S.token + S.reserved)
DrawsNothing == last = S.clock /\ UNCHANGED tokenVars

(* The line.  A place that has lapsed is as good as none. *)
Places == Server!Living(line)
Present == IF Places = <<>> THEN 0 ELSE left
(* A third of that time is a whole number of milliseconds, too. *)
InPlace(place) == [place EXCEPT !.lapses = now + S.waits, !.kept = 3 * Whole(S.waits \div 3)]
Wanted(o) == [owner |-> o, sent |-> S.nonce, lease |-> S.terms, want |-> "grant"]
Place(o) == InPlace(Server!Place(Wanted(o)))
Entered(places) == IF Server!IsIn(S.o, places) THEN [n \in 1..Len(places) |-> IF places[n].owner = S.o THEN Place(S.o) ELSE places[n]]
                   ELSE Append(places, Place(S.o))
Renewed == [n \in 1..Len(Places) |-> IF Places[n].owner = S.o THEN InPlace(Server!Lasting(Places[n], [sent |-> S.nonce])) ELSE Places[n]]

(* Those that cannot be granted the lock are passed over, up to the one that can. *)
Candidates == Server!Candidates(Places)
Passed == Server!PassedUntil(Places, IF Candidates = <<>> THEN <<>> ELSE Candidates[1].owner)
SaysTold(owners) == {S.told[n] : n \in 1..Len(S.told)} = owners
LeftToTold(released) == IF released \/ Present = 0 THEN now + HeadStart ELSE Present

(* Whoever enters the line does not overtake: the lock is left to those who were told. *)
AsksInLine == S.kind = "acquire" /\ S.waits > 0 /\ Holder = Nobody
IsLeft == AsksInLine /\ ~Server!MayTake(Wanted(S.o))
LeavesToOthers(m) ==
  /\ ~S.ok /\ LET first == Server!FirstTold(Places) IN SaysTold({first.owner}) /\ S.holder = first.owner /\ ~Server!MayBeGranted(first)
  /\ requests' = requests \ {m} /\ answers' = answers \cup {[request |-> m, ok |-> FALSE, late |-> FALSE, at |-> now]}
  /\ UNCHANGED <<now, clock, lock, own>>

LineAfterExecution ==
  CASE S.kind = "acquire" /\ ~S.ok /\ S.waits > 0 -> Entered(IF AsksInLine THEN Passed ELSE Places)
    [] S.kind \in Taking /\ S.ok -> Server!Without(IF AsksInLine THEN Passed ELSE Places, S.o)
    [] OTHER -> Places
LeftAfterExecution ==
  CASE IsLeft -> LeftToTold(FALSE)
    [] AsksInLine -> 0
    [] OTHER -> Present
ServesIf(isFree, why) == due' = IF isFree /\ line' # <<>> THEN why ELSE ""

(* A place is granted the free lock, with the lease that it asked for.  Its process will use it, or it is the last sign   *)
(* of it.                                                                                                                 *)
Granted == LET served == Server!Served(Places, TRUE) message == CHOOSE m \in served.told : TRUE o == served.lock.owner IN
  /\ Holder = Nobody /\ due # "tell" /\ Places # <<>> /\ o = S.o
  /\ Abs(S.until - served.lock.until) <= Rounding /\ lock' = served.lock /\ line' = served.line /\ left' = 0 /\ due' = ""
  /\ own' = [own EXCEPT ![o].leftAt = IF WillUse(o) THEN @ ELSE now, ![o].lease = Max(@, message.lease)]
  \* With a nonce, a token goes with it.
  /\ S.nonce = message.sent /\ last' = S.clock
  /\ IF S.nonce = 0 THEN UNCHANGED tokenVars /\ waits' = [waits EXCEPT ![o].written = message.lease] ELSE
     /\ S.said = message.lease /\ Grant(1, S.seen, waits[o].reserve)
     /\ waits' = [waits EXCEPT ![o].written = message.lease,
                               ![o].grants = @ \cup {[message |-> message, token |-> latest'.token, end |-> last']}]
  /\ UNCHANGED <<now, clock, requests, answers, uses, blocks, given, told>>

IsToldNext == IF Candidates = <<>> THEN TRUE ELSE ~Server!MayBeGranted(Candidates[1])
(* If no place may be granted the lock, it is left to the first two, who are told. *)
Tells == LET served == Server!Left(Places, TRUE) IN
  /\ Holder = Nobody /\ due # "" /\ (due = "tell" \/ IsToldNext) = TRUE
  /\ SaysTold({m.owner : m \in served.told}) /\ line' = served.line /\ left' = LeftToTold(due # "refresh") /\ due' = ""
  /\ UNCHANGED <<vars, tokenVars, uses, waits, blocks, given, told>>

(* Messages say in whole milliseconds how long before the grant the request was executed. *)
(* By the process's own clock, less the margin for what has passed on the server. *)
Passing(after) == Max(0, LessMargin(after))
AsHeard(m) == [m EXCEPT !.after = Passing(S.after)]
(* Less the margin for the lease. *)
Margin == S.wanted - LessMargin(S.wanted)
AsKnown(o) == [asked |-> IF CanAsk(o) THEN Process!None ELSE 0, want |-> IF S.wanted = 0 THEN "tell" ELSE "grant", lease |-> S.wanted,
               moments |-> {<<pair[1], pair[2] - Margin>> : pair \in waits[o].moments}]

(* A process begins because a message grants it the lock, and counts on it for its whole lease. *)
Believed == \E grant \in waits[S.o].grants : LET m == AsHeard(grant.message) o == AsKnown(S.o) begin == Process!BeginOfGrant(o, m) IN
  /\ Process!IsCertain(o, m) /\ begin + Margin <= Clock(S.o) + Rounding
  /\ S.nonce = m.sent /\ S.lease = grant.message.lease /\ S.after = Whole(grant.message.after) /\ S.token = grant.token /\ S.token + S.reserved = grant.end
  /\ Abs(S.until - (begin + Process!LeaseOf(o, m))) <= Rounding
  /\ own' = [own EXCEPT ![S.o].phase = "held", ![S.o].until = S.until, ![S.o].lease = Max(@, S.lease), ![S.o].deadline = 0]
  /\ blocks' = [blocks EXCEPT ![S.o] = @ \cup {<<S.token, S.token + S.reserved>>}]
  /\ UNCHANGED <<now, clock, lock, requests, answers, tokenVars, uses, given, told>>

(* The moment before a request is sent that makes or keeps a place, for the first time. *)
Asked == IF S.nonce = 0 THEN UNCHANGED waits ELSE waits' = [waits EXCEPT ![S.o].moments = @ \cup {<<S.nonce, Clock(S.o)>>}]

Free == [owner |-> Nobody, until |-> 0]
KeepsPlace == /\ S.kept = Server!IsIn(S.o, Places) /\ line' = Renewed /\ left' = Present /\ ServesIf(Holder = Nobody, "refresh")
              /\ UNCHANGED lock
LeavesLine == LET isIn == Server!IsIn(S.o, Places) isHeld == ~isIn /\ Holder = S.o IN
              /\ line' = Server!Without(Places, S.o) /\ left' = Present
              /\ lock' = IF isHeld THEN Free ELSE lock
              /\ ServesIf(isHeld \/ (isIn /\ Holder = Nobody), IF isHeld THEN "release" ELSE "refresh")
OfLine(action) == action /\ UNCHANGED <<now, clock, requests, answers, own, tokenVars, uses, blocks, given, told>>

Executed ==
  \E m \in Sent(S.copy) :
    \* The server may answer "busy" without looking at the time.
    /\ IsLate(m) => ~S.ok /\ S.kind = "acquire" /\ S.waits = 0
    /\ IF IsLeft THEN LeavesToOthers(m)
       ELSE /\ Succeeds(m) = S.ok /\ Execute(m)
            /\ S.kind = "acquire" /\ ~S.ok => S.holder = Holder /\ (Holder = Nobody => S.told # <<>>)
    /\ line' = LineAfterExecution /\ left' = LeftAfterExecution /\ ServesIf(S.kind = "release" /\ S.ok, "release")
    /\ waits' = IF S.kind = "acquire" /\ ~S.ok THEN [waits EXCEPT ![S.o].reserve = S.reserve] ELSE waits
    /\ IF S.kind \notin Taking THEN UNCHANGED <<tokenVars, blocks>>
       ELSE IF S.ok THEN GrantsAsAnswered /\ blocks' = [blocks EXCEPT ![S.o] = @ \cup {<<S.token, S.token + S.reserved>>}]
       ELSE DrawsNothing /\ UNCHANGED blocks
    /\ UNCHANGED <<uses, given, told>>

(* What a caller got that had just left is handed on, with the next token of the block.  A call that was made in the body  *)
(* of another one shares its lock, or gets it after that has ended.                                                        *)
IsNextToken(o, token) ==
  IF given[o] = 0 THEN \E b \in blocks[o] : token = b[1] \/ (token = b[1] + 1 /\ token <= b[2])
  ELSE \/ S.within /\ token = given[o]
       \/ uses[o] = {} /\ token > given[o] /\ \E b \in blocks[o] : b[1] < token /\ token <= b[2]

(* The client library sends a request again that may have been lost, or its process does, which then waits for longer. *)
IsOnItsWay == S.copy \in {m.copy : m \in {other \in requests : other.kind = S.kind /\ other.owner = S.o /\ other.sent = S.sent}}
MaySendUntil(deadline) == deadline <= own[S.o].deadline \/ (own[S.o].phase = "asked" /\ deadline <= LatestDeadline(S.o))
SendsCopy ==
  /\ S.copy > 1 /\ ~IsOnItsWay
  /\ requests' = requests \cup {[kind |-> S.kind, owner |-> S.o, from |-> S.from, lease |-> S.lease,
                                sent |-> S.sent, deadline |-> S.deadline, copy |-> S.copy]}
  /\ IF S.kind \in Taking
     THEN /\ own[S.o].phase \in {"asked", "left"} /\ own[S.o].sent = S.sent /\ MaySendUntil(S.deadline)
          /\ own' = [own EXCEPT ![S.o].resent = TRUE, ![S.o].deadline = Max(@, S.deadline)]
     ELSE UNCHANGED own
  /\ UNCHANGED <<now, clock, lock, answers>>
(* It came too late, and the process knows that. *)
SendsAgain == \E a \in Answered(S.copy) :
  /\ a.late /\ MaySendUntil(S.deadline)
  /\ answers' = answers \ {a} /\ requests' = requests \cup {[a.request EXCEPT !.deadline = S.deadline]}
  /\ own' = [own EXCEPT ![S.o].deadline = Max(@, S.deadline)] /\ UNCHANGED <<now, clock, lock>>

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
                  /\ LoseClock /\ line' = <<>> /\ left' = 0 /\ due' = "" /\ UNCHANGED <<uses, blocks, given, told>>

Crashed == Crash(S.c) /\ uses' = [o \in DOMAIN uses |-> IF ClientOf(o) = S.c THEN {} ELSE uses[o]]
           /\ UNCHANGED <<tokenVars, blocks, given, told>>

(* Every request was executed, refused or lost, every answer was read or lost, and nobody holds anything. *)
Finish == /\ requests = {} /\ answers = {}
          /\ \A o \in DOMAIN own : uses[o] = {} /\ own[o].phase \in {"new", "left", "dead"}
          /\ UNCHANGED <<vars, tokenVars, uses, blocks, given, told>>

(* So two parts of the process may release the owner of a place, or of a request that was sent more than once. *)
ReleasesAgain == LET again == Request("release", S.o, S.o, 0, 0) IN
  /\ (S.placed \/ own[S.o].resent) /\ own[S.o].phase = "left" /\ own[S.o].settled /\ again \notin requests /\ requests' = requests \cup {again}
  /\ UNCHANGED <<now, clock, lock, answers, own>>

OfLease(action) == action /\ UNCHANGED <<tokenVars, uses, blocks, given, told>>

Forced == /\ Holder = S.o /\ OfLease(ForceRelease) /\ line' = Places /\ left' = Present /\ ServesIf(TRUE, "tell")

Step ==
  CASE S.e = "acquire"  -> OfLease(Acquire(S.o, S.lease, S.deadline)) /\ Asked
    [] S.e = "transfer" -> uses[S.from] = {} /\ OfLease(Transfer(S.from, S.o, S.lease, S.deadline))
    [] S.e = "renew"    -> OfLease(Renew(S.o, S.lease))
    [] S.e = "release"  -> OfLease(SendRelease(S.o) \/ ReleasesAgain)
    [] S.e = "resend"   -> OfLease(SendsCopy)
    [] S.e = "again"    -> OfLease(SendsAgain)
    [] S.e = "execute"  -> Executed
    [] S.e = "grant"    -> Granted
    [] S.e = "tell"     -> Tells
    [] S.e = "refresh"  -> OfLine(Asked) /\ UNCHANGED lock
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
    [] S.e = "force"    -> Forced
    [] S.e = "data lost" -> LoseEverything
    \* Other locks draw from the same clock.
    [] S.e = "other grant" -> /\ GrantInBatch(2, S.seen, S.reserve, S.count, 0) /\ latest'.token = S.token /\ last' = S.clock
                              /\ UNCHANGED <<vars, uses, blocks, given, told>>
    [] S.e = "finish"   -> Finish

(* A place whose removal was not answered is released in the background, where no acquisition may ever have been in doubt. *)
GivesUpPlace == /\ S.placed /\ own' = [own EXCEPT ![S.o] = Leave(S.o, Doubt(S.o))]
                /\ OfLease(UNCHANGED <<now, clock, lock, requests, answers>>) /\ UNCHANGED <<t, i, lineVars, waits>>

(* What the process does without a message: it lets go before it releases, and notices what it has lost. *)
LetsGo == /\ S.e \in {"release", "lost"} /\ own[S.o].phase = "held"
          /\ IF S.e = "release" THEN uses[S.o] = {} ELSE own[S.o].removed \/ \E pair \in ToldTo(S.call) : Clock(S.o) >= pair[2] - Rounding
          /\ OfLease(Release(S.o)) /\ UNCHANGED <<t, i, lineVars, waits>>

IsDone == i > Len(Steps)

(* A state that breaks a promise has no successor. *)
TokensGrow == latest.token > latest.before
(* What a place was granted may be longer than the lease that its owner has asked for since. *)
IsGrantKept(o) == Holder = o /\ lock.until <= own[o].leftAt + waits[o].written
FreeInTimeOrKept ==
  \A o \in DOMAIN own : Holder = o /\ ~WillUse(o) =>
    (lock.until <= own[o].leftAt + TimeoutOf(o) + ErrorOf(o) + own[o].lease) \/ IsGrantKept(o)
Promises == BeliefIsCovered /\ FreeInTimeOrKept /\ NothingIsLeft /\ TokensGrow

TraceNext ==
  /\ Promises /\ (due # "" => S.e \in {"grant", "tell", "keep", "unread"})
  /\ IF IsDone THEN UNCHANGED traceVars
     ELSE IF time # S.t \/ clock # S.cl THEN Tick
     ELSE IF S.e \in {"release", "lost"} /\ own[S.o].phase = "held" THEN LetsGo
     ELSE IF S.e = "release" /\ own[S.o].phase = "new" THEN GivesUpPlace
     ELSE /\ Step /\ i' = i + 1 /\ UNCHANGED t
          /\ S.e \notin {"execute", "grant", "tell", "keep", "leave", "force", "data lost"} => UNCHANGED lineVars
          /\ S.e \notin {"acquire", "refresh", "execute", "grant", "tell"} => UNCHANGED waits

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

(* An invariant, so that it is evaluated in each state: says what became of each trace. *)
Report == IF IsDone THEN PrintT(<<"accepted", t>>) ELSE ENABLED TraceNext \/ PrintT(<<"refused", t, i>>)
==============================================================================
