---------------------------- MODULE TracePermits ----------------------------
(***************************************************************************)
(* Histories of one lock that n may hold, checked step by step: the server *)
(* does with each request what Permits says, whoever counts on its place   *)
(* by its own clock is covered, and places are passed over as LineServer   *)
(* says.                                                                   *)
(***************************************************************************)
EXTENDS Permits, TraceRequests

(* `terms`: the lease with which a place is granted the lock. *)
serverVars == <<ends, until, line, granted>>
unusedVars == <<limit, phase, belief, since, overtaken>>
traceVars == <<vars, t, i, clock, requestVars>>

TraceInit == RequestsInit /\ now = Traces[t].steps[1].t /\ ends = [o \in Owners |-> 0] /\ until = 0 /\ line = <<>> /\ granted = <<>>
             /\ limit = Traces[t].limits /\ phase = 0 /\ terms = [o \in Owners |-> 0] /\ belief = 0 /\ since = 0 /\ overtaken = FALSE

(* What has ended is as good as gone. *)
Living(places, time) == SelectSeq(places, LAMBDA place : place.lapses > Whole(time))
PassTime ==
  /\ Passes(now) /\ now' = S.t /\ line' = Living(line, S.t) /\ until' = IF until > S.t THEN until ELSE 0
  /\ ends' = [o \in Owners |-> IF In[o] > S.t THEN In[o] ELSE 0] /\ granted' = SelectSeq(granted, LAMBDA o : In[o] > S.t)
  /\ UNCHANGED <<terms, unusedVars, t, i, requestVars>>

KeepsServer == UNCHANGED serverVars
(* From now on, until a whole millisecond. *)
Lasts(lease) == Whole(now) + lease - now
Server == INSTANCE LineServer WITH now <- Whole(now), Processes <- {}, Nobody <- 0, Leases <- {}, Wants <- {}, ShortestGrant <- 0, LongestGrant <- 0,
  Claim <- 0, WaiterTimeout <- 0, Interval <- 0, MaxFaults <- 0, ahead <- 0, lock <- [owner |-> 0, until |-> 0], arrived <- <<>>,
  net <- {}, own <- <<>>, stalled <- {}, absent <- <<>>, dead <- {}, idle <- 0, faults <- 0, cost <- 0,
  listening <- {S.listening[n] : n \in 1..Len(S.listening)}
OfProcess(o) == <<ProcessOf(o)>>
(* The time at which a place lapses says how many may hold the lock according to it, in a fraction of a millisecond. *)
Fraction == 1
Place(o, waits) == [owner |-> o, lapses |-> Whole(now) + waits + Fraction, kept |-> 3 * Whole(waits \div 3), want |-> "grant", counted |-> Server!IsCounted(OfProcess(o))]
Renewed(places, owners, waits) ==
  [n \in 1..Len(places) |-> IF \E k \in 1..Len(owners) : owners[k] = places[n].owner THEN Place(places[n].owner, waits) ELSE places[n]]
Given(s, o, lease) == State(Taken(s.zset, o, lease), Without(s.line, o), IF s.zset[o] > now THEN s.order ELSE Order(s.order, o))

(* Whom the server cannot grant a permit is passed over, or told that there is room, and then nobody behind it is granted  *)
(* one.                                                                                                                    *)
AsSeen(place) == [place EXCEPT !.owner = OfProcess(place.owner)]
IsCandidate(place) == Server!IsCandidate(AsSeen(place))
PassedOver(place) == LET lapses == Server!PassedOver(AsSeen(place)).lapses IN
  IF Server!MayBeGranted(place) /\ lapses # place.lapses THEN [place EXCEPT !.lapses = lapses + Fraction] ELSE place
FirstOf(numbers) == CHOOSE n \in numbers : \A other \in numbers : n <= other
Candidates(places, able) == {n \in able : IsCandidate(places[n])}
PassedBefore(places, able, next) == [n \in 1..Len(places) |-> IF n \in able /\ n < next THEN PassedOver(places[n]) ELSE places[n]]
(* As far as it is not the turn of `asker`, who has asked. *)
RECURSIVE ServedUpTo(_, _)
ServedUpTo(s, asker) ==
  LET able == Able(s.line, s.zset) candidates == Candidates(s.line, able)
      next == IF candidates = {} THEN Len(s.line) + 1 ELSE FirstOf(candidates)
      places == PassedBefore(s.line, able, next) IN
  IF able = {} THEN s
  ELSE IF candidates = {} THEN [s EXCEPT !.line = places]
  ELSE LET place == places[next] o == place.owner IN
       IF o = asker \/ ~Server!MayBeGranted(place) THEN [s EXCEPT !.line = places]
       ELSE ServedUpTo(State(Taken(s.zset, o, Lasts(terms[o])), Without(places, o), Order(s.order, o)), asker)
NobodyAsks == 0
ServedInTurn(s) == ServedUpTo(s, NobodyAsks)
IsToldBefore(o, s) == LET candidates == Candidates(s.line, Able(s.line, s.zset)) IN
                      candidates # {} /\ s.line[FirstOf(candidates)].owner # o

(* Whoever waits lets those go first that are in front, if there is room for them.  Those who were told go first for a     *)
(* while.  When that is over is not checked.                                                                               *)
Acquires(m) ==
  LET mustWait == m.waits > 0 /\ m.o \notin Holders
      s == IF mustWait /\ MayTake(m.o, Is) THEN ServedUpTo(Is, m.o) ELSE Is
      isLeft == mustWait /\ MayTake(m.o, s) /\ IsToldBefore(m.o, s) IN
  /\ IF isLeft THEN S.ok => IsIn(m.o, line) ELSE S.ok = MayTake(m.o, s)
  /\ IF S.ok THEN Becomes(Given(s, m.o, Later(Lasts(m.lease), s.zset[m.o] - now)))
     ELSE IF m.waits = 0 THEN KeepsServer
     ELSE Becomes([s EXCEPT !.line = IF IsIn(m.o, @) THEN Renewed(@, <<m.o>>, m.waits) ELSE Append(@, Place(m.o, m.waits))])
Renews(m) == S.ok = (m.o \in Holders) /\ IF S.ok THEN Becomes(State(Taken(In, m.o, Lasts(m.lease)), line, granted)) ELSE KeepsServer
GivenBack(o) == Becomes(ServedInTurn(State([Current(In) EXCEPT ![o] = 0], line, granted)))
Releases(m) == S.ok = (m.o \in Holders) /\ IF S.ok THEN GivenBack(m.o) ELSE KeepsServer
(* A hand-over in one process: a release and an acquisition in one step. *)
Transfers(m) ==
  /\ S.ok = (m.from \in Holders \/ m.o \in Holders)
  /\ IF S.ok THEN Becomes(Given(State([Current(In) EXCEPT ![m.from] = 0], line, granted), m.o, Lasts(m.lease))) ELSE KeepsServer
Keeps(m) == /\ \A n \in 1..Len(m.owners) : (S.kept[n] = 1) = IsIn(m.owners[n], line)
            /\ Becomes(ServedInTurn([Is EXCEPT !.line = Renewed(@, m.owners, m.waits)]))
(* The place may have been granted one meanwhile. *)
Leaves(m) == IF IsIn(m.o, line) THEN Becomes(ServedInTurn([Is EXCEPT !.line = Without(@, m.o)]))
             ELSE IF m.o \in Holders THEN GivenBack(m.o) ELSE KeepsServer

Serves(m) ==
  CASE m.kind = "acquire"  -> Acquires(m)
    [] m.kind = "renew"    -> Renews(m)
    [] m.kind = "release"  -> Releases(m)
    [] m.kind = "transfer" -> Transfers(m)
    [] m.kind = "keep"     -> Keeps(m)
    [] m.kind = "leave"    -> Leaves(m)

(* The server's own view afterwards is that of the code, including the owners that it has granted a place. *)
IsAsSeen == /\ {S.holders[n] : n \in 1..Len(S.holders)} = {o \in Owners : ends'[o] > now}
            /\ S.line = [n \in 1..Len(line') |-> line'[n].owner]
Executed == \E m \in Of(requests) : /\ Executes(m, now) /\ Serves(m.step) /\ IsAsSeen
                                      /\ terms' = IF S.ok \/ m.step.terms = 0 THEN terms ELSE [terms EXCEPT ![m.step.o] = m.step.terms]
Late == (\E m \in Of(requests) : IsLate(m, now)) /\ Drops /\ KeepsServer
Finish == AllIsOver /\ Holders = {} /\ line = <<>> /\ KeepsServer /\ UNCHANGED requestVars

Step == CASE S.e = "execute" -> Executed
          [] S.e = "late"    -> Late
          [] S.e = "finish"  -> Finish
          [] OTHER           -> OfRequests /\ KeepsServer

(* A state that breaks a promise has no successor. *)
Promises == NeverMoreThanN /\ \A b \in told : Believes(b) => b.o \in Holders
TraceNext ==
  /\ Promises
  /\ IF IsDone THEN UNCHANGED traceVars
     ELSE IF now # S.t \/ clock # S.cl THEN PassTime
     ELSE Step /\ i' = i + 1 /\ (S.e # "execute" => UNCHANGED terms) /\ UNCHANGED <<now, unusedVars, t, clock>>

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

(* An invariant, so that it is evaluated in each state: says what became of each trace. *)
Report == IF IsDone THEN PrintT(<<"accepted", t>>) ELSE ENABLED TraceNext \/ PrintT(<<"refused", t, i>>)
==============================================================================
