--------------------------- MODULE TraceReadWrite ---------------------------
(***************************************************************************)
(* Histories of one read/write lock, checked step by step: the server does *)
(* with each request what ReadWrite and ReadWriteServer say, and whoever   *)
(* counts on the lock by its own clock is covered.                         *)
(***************************************************************************)
EXTENDS ReadWrite, TraceRequests

serverVars == <<mode, writer, until, readers, line, arrived>>
traceVars == <<vars, t, i, clock, requestVars>>

Unowned == 0

TraceInit == RequestsInit /\ now = Traces[t].steps[1].t /\ mode = "free" /\ writer = Nobody /\ until = 0 /\ readers = Nothing
             /\ line = <<>> /\ arrived = <<>> /\ terms = 0 /\ belief = 0 /\ died = 0 /\ wrong = {}

(* What has ended is as good as gone. *)
Living(places, time) == SelectSeq(places, LAMBDA place : place.lapses > time)
PassTime ==
  /\ Passes(now) /\ now' = S.t /\ line' = Living(line, S.t)
  /\ IF until > S.t THEN Lock(mode, writer, until, [o \in Owners |-> IF readers[o] > S.t THEN readers[o] ELSE 0]) ELSE Freed
  /\ UNCHANGED <<arrived, terms, belief, died, wrong, t, i, requestVars>>

KeepsServer == UNCHANGED serverVars
(* From now on, until a whole millisecond. *)
Lasts(lease) == Whole(now) + lease - now
PlaceFor(m, writes) == [owner |-> m.o, writes |-> writes, lapses |-> Whole(now) + m.waits]
WaitsFor(m, writes) ==
  /\ line' = IF IsIn(m.o, line) THEN [line EXCEPT ![At(m.o, line)] = PlaceFor(m, writes)] ELSE Append(line, PlaceFor(m, writes))
  /\ UNCHANGED <<mode, writer, until, readers, arrived>>

(* A free lock with others in front is left to them, and each place in line may take it a while after they were told.  When *)
(* that is over is not checked.  Who does not listen cannot be told: if nobody in line listens, a newcomer takes the lock  *)
(* as well, because it would otherwise wait for those who have left.                                                       *)
Listens(o) == \E n \in 1..Len(S.listening) : S.listening[n] = ProcessOf(o)
Hearing == SelectSeq(line, LAMBDA place : Listens(place.owner))
MayPass(o) == Hearing = <<>> \/ Head(Hearing).owner = o
IsLeftToOthers(m) == Mode = "free" /\ m.waits > 0
(* A reader may follow another one of its process past those that wait. *)
Acquires(m) ==
  LET reads == m.side = "read"
      inTurn == IF reads THEN MayRead(m.o) \/ (m.past /\ Mode # "write") ELSE MayWrite(m.o, m.waits = 0 \/ m.past)
      may == inTurn \/ (IsLeftToOthers(m) /\ (MayPass(m.o) \/ (S.ok /\ IsIn(m.o, line)))) IN
  /\ S.ok = may
  /\ IF may THEN (IF reads THEN TakeReader(m.o, Lasts(m.lease)) ELSE TakeWriter(m.o, Lasts(m.lease))) /\ Leaves(m.o)
     ELSE IF m.waits > 0 THEN WaitsFor(m, ~reads) ELSE KeepsServer
Renews(m) ==
  /\ S.ok = IF m.side = "read" THEN Reads(m.o) ELSE Writes(m.o)
  /\ UNCHANGED <<line, arrived>>
  /\ IF ~S.ok THEN UNCHANGED <<mode, writer, until, readers>>
     ELSE IF m.side = "read" THEN TakeReader(m.o, Lasts(m.lease)) ELSE TakeWriter(m.o, Lasts(m.lease))
Releases(m) == LET left == [Fields EXCEPT ![m.o] = 0] IN
  /\ S.ok = IF m.side = "read" THEN Reads(m.o) ELSE Writes(m.o)
  /\ IF ~S.ok THEN KeepsServer
     ELSE IF m.side = "write" THEN FitToReaders(Fields) /\ ServedIf(~IsRead \/ (line # <<>> /\ ~line[1].writes))
     ELSE IF Mode = "write" THEN Lock(mode, writer, until, left) /\ UNCHANGED <<line, arrived>>
     ELSE FitToReaders(left) /\ ServedIf(Longest(left) <= now)
(* A hand-over in one process: a release and an acquisition in one step, unless the writer goes on reading. *)
Transfers(m) ==
  /\ S.ok = ((Writes(m.from) /\ ~Reads(m.from)) \/ Writes(m.o))
  /\ IF S.ok THEN TakeWriter(m.o, Lasts(m.lease)) /\ Leaves(m.o)
     ELSE IF Writes(m.from) THEN FitToReaders(Fields) /\ UNCHANGED <<line, arrived>> ELSE KeepsServer
Keeps(m) ==
  /\ \A n \in 1..Len(m.owners) : (S.kept[n] = 1) = IsIn(m.owners[n], line)
  /\ line' = [n \in 1..Len(line) |-> IF \E k \in 1..Len(m.owners) : m.owners[k] = line[n].owner
                                     THEN [line[n] EXCEPT !.lapses = Whole(now) + m.waits] ELSE line[n]]
  /\ UNCHANGED <<mode, writer, until, readers, arrived>>

Serves(m) ==
  CASE m.kind = "acquire"  -> Acquires(m)
    [] m.kind = "renew"    -> Renews(m)
    [] m.kind = "release"  -> Releases(m)
    [] m.kind = "transfer" -> Transfers(m)
    [] m.kind = "keep"     -> Keeps(m)
    [] m.kind = "leave"    -> Leaves(m.o) /\ UNCHANGED <<mode, writer, until, readers>>

(* The server's own view afterwards is that of the code. *)
IsAsSeen ==
  LET holders == {o \in Owners : readers'[o] > now \/ writer' = o} IN
  /\ {S.holders[n] : n \in 1..Len(S.holders)} = (IF until' > now THEN holders ELSE {})
  /\ S.mode = (IF until' > now THEN mode' ELSE "free")
  /\ S.line = [n \in 1..Len(line') |-> line'[n].owner]
Executed == \E m \in Of(requests) : Executes(m, now) /\ Serves(m.step) /\ IsAsSeen
Late == (\E m \in Of(requests) : IsLate(m, now)) /\ Drops /\ KeepsServer
Finish == AllIsOver /\ Mode = "free" /\ line = <<>> /\ KeepsServer /\ UNCHANGED requestVars

Step == CASE S.e = "execute" -> Executed
          [] S.e = "late"    -> Late
          [] S.e = "finish"  -> Finish
          [] OTHER           -> OfRequests /\ KeepsServer

(* A state that breaks a promise has no successor. *)
Promises == \A b \in told : Believes(b) =>
  /\ IF b.side = "read" THEN Reads(b.o) /\ (Mode = "write" => Writes(b.o)) ELSE Writes(b.o)
  /\ \A c \in told : Believes(c) /\ c.o # b.o => c.side = "read" /\ b.side = "read"
TraceNext ==
  /\ Promises
  /\ IF IsDone THEN UNCHANGED traceVars
     ELSE IF now # S.t \/ clock # S.cl THEN PassTime
     ELSE Step /\ i' = i + 1 /\ UNCHANGED <<now, terms, belief, died, wrong, t, clock>>

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

(* An invariant, so that it is evaluated in each state: says what became of each trace. *)
Report == IF IsDone THEN PrintT(<<"accepted", t>>) ELSE ENABLED TraceNext \/ PrintT(<<"refused", t, i>>)
==============================================================================
