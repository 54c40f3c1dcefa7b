---------------------------- MODULE TraceRequests ----------------------------
(***************************************************************************)
(* What traces of read/write locks, and of locks that n may hold, have in  *)
(* common: what is on its way, what a process knows by the answers that it *)
(* has read, and which calls count on the lock.                            *)
(*                                                                         *)
(* Times are microseconds: the server's, and each process's own.           *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC, TraceData

VARIABLES t,        \* which trace
          i,        \* its next step
          clock,    \* of each process
          requests, \* copies on their way to the server: the step that sent it, and which copy
          answers,  \* answers that may still be read
          used,     \* of each owner id: whether it is "new", "asked" for, "given" back, or "settled"; how many requests for it
                    \* were not simply answered
          known,    \* until when each owner may count on the lock, by the answers that its process has read
          told      \* the calls whose bodies run: until when each counts on the lock; 0: it knows that it is lost

requestVars == <<requests, answers, used, known, told>>

Steps == Traces[t].steps
S == Steps[i]
IsDone == i > Len(Steps)
AllOwners == 1..MostOwners
NoSymmetry == {} \* TLC would count the permutations of all owners
ProcessOf(o) == Traces[t].processes[o]
Clock(o) == clock[ProcessOf(o)]
LessMargin(lease) == lease - lease \div 100 - 2000
Rounding == 3
Later(a, b) == IF a > b THEN a ELSE b
(* The server's clock in whole milliseconds, by which leases end, and places lapse. *)
Whole(micros) == (micros \div 1000) * 1000
Abs(n) == IF n < 0 THEN -n ELSE n

Unknown == [read |-> 0, write |-> 0, place |-> 0]
Unused == [read |-> "new", write |-> "new", place |-> "new", doubts |-> 0]
RequestsInit == /\ t \in 1..Len(Traces) /\ i = 1 /\ clock = Traces[t].steps[1].cl
                /\ requests = {} /\ answers = {} /\ used = [o \in AllOwners |-> Unused] /\ known = [o \in AllOwners |-> Unknown] /\ told = {}

(* Time passes on all clocks, and no two of them drift apart by more than 1 %, which is what the margin is for. *)
Passes(now) ==
  /\ now <= S.t /\ clock' = S.cl
  /\ \A p \in DOMAIN clock : clock[p] <= S.cl[p] /\ Abs((S.cl[p] - clock[p]) - (S.t - now)) <= (S.t - now) \div 100 + 2

------------------------------------------------------------------------------
(* Requests *)

Of(messages) == {m \in messages : m.step.id = S.id /\ m.copy = S.copy}
Message(step, copy) == [step |-> step, copy |-> copy]
IsOf(b, o, side) == b.o = o /\ b.side = side
(* Whoever gives the lock back, or hands it over, does not count on it any more. *)
Gives == IF S.kind = "transfer" THEN S.from ELSE S.o
(* An id is not asked for again after it was given back.  A writer that reads does so under its own id, more than once.     *)
(* Once each request for it was simply answered, it is given back until that is answered, too.                              *)
Takes == {"acquire", "transfer"}
MaySend == CASE S.kind = "acquire" -> used[S.o][S.side] \in {"new", "asked"} \/ S.side = "read"
             [] S.kind = "transfer" -> used[S.o][S.side] \in {"new", "asked"} /\ used[S.from][S.side] = "asked"
             [] S.kind = "renew" -> used[S.o][S.side] = "asked"
             [] S.kind = "release" -> used[S.o] # Unused \* also a place whose removal was not answered
             [] S.kind = "leave" -> used[S.o] # Unused
             [] OTHER -> TRUE
Asked == [used EXCEPT ![S.o][S.side] = "asked", ![S.o].doubts = @ + 1]
AfterSending ==
  CASE S.kind = "acquire" -> Asked
    [] S.kind = "transfer" -> [Asked EXCEPT ![S.from][S.side] = "given"]
    [] S.kind = "release" -> [used EXCEPT ![S.o][S.side] = "given"]
    [] OTHER -> used
AfterReading(a) == LET m == a.step IN
  CASE m.kind \in Takes /\ a.copy = 1 -> [used EXCEPT ![m.o].doubts = @ - 1]
    [] m.kind = "release" /\ used[m.o][m.side] = "given" /\ used[m.o].doubts = 0 -> [used EXCEPT ![m.o][m.side] = "settled"]
    [] OTHER -> used
IsOfOneProcess == \A o \in {S.o, S.from} \ {0} : ProcessOf(o) = S.p
Send == LET m == Message([S EXCEPT !.e = "send"], 1) gives == S.kind \in {"release", "transfer"} IN
  /\ S.sent = clock[S.p] /\ IsOfOneProcess /\ m \notin requests /\ requests' = requests \cup {m}
  /\ gives => \A b \in told : ~IsOf(b, Gives, S.side)
  /\ MaySend /\ used' = AfterSending
  /\ known' = IF gives THEN [known EXCEPT ![Gives][S.side] = 0] ELSE known
  /\ UNCHANGED <<answers, told>>
Resend == LET m == Message([S EXCEPT !.e = "send"], S.copy) IN
  /\ S.sent <= clock[S.p] /\ m \notin requests /\ requests' = requests \cup {m} /\ UNCHANGED <<answers, used, known, told>>
IsLate(m, now) == m.step.deadline > 0 /\ now > m.step.deadline
(* The server may answer "busy" without looking at the time. *)
Executes(m, now) == /\ IsLate(m, now) => ~S.ok /\ m.step.waits = 0
                    /\ requests' = requests \ {m}
                    /\ answers' = answers \cup {[step |-> m.step, copy |-> m.copy, ok |-> S.ok]} /\ UNCHANGED <<used, known, told>>
Drops == /\ \E m \in Of(requests) : requests' = requests \ {m}
         /\ UNCHANGED <<answers, used, known, told>>

ReadAnswer == \E a \in Of(answers) : LET m == a.step IN
  /\ a.ok = S.ok /\ answers' = answers \ {a}
  /\ known' = IF m.kind \notin Takes \cup {"renew"} THEN known
              ELSE IF a.ok THEN [known EXCEPT ![m.o][m.side] = Later(@, m.sent + LessMargin(m.lease))]
              ELSE IF m.kind = "renew" THEN [known EXCEPT ![m.o][m.side] = 0] ELSE known
  /\ used' = AfterReading(a)
  /\ UNCHANGED <<requests, told>>
Unread == (\E a \in Of(answers) : answers' = answers \ {a}) /\ UNCHANGED <<requests, used, known, told>>

------------------------------------------------------------------------------
(* Calls *)

(* A lease of several locks ends with the first of them. *)
IsUntil(until, o, side) == until <= known[o][side] + Rounding /\ (S.alone => until >= known[o][side] - Rounding)
Calls(call) == {b \in told : b.call = call}
Begin == /\ IsUntil(S.until, S.o, S.side) /\ Calls(S.call) = {}
         /\ S.within \/ \A b \in told : ~IsOf(b, S.o, S.side)
         /\ told' = told \cup {[call |-> S.call, o |-> S.o, side |-> S.side, until |-> S.until]}
         /\ UNCHANGED <<requests, answers, used, known>>
Confirm == \E b \in Calls(S.call) :
  /\ IsUntil(S.until, b.o, b.side) /\ b.until \notin {0, S.until}
  /\ told' = (told \ {b}) \cup {[b EXCEPT !.until = S.until]} /\ UNCHANGED <<requests, answers, used, known>>
(* The process has noticed that the lease has ended, or was told that it is gone. *)
Lost == \E b \in Calls(S.call) :
  /\ b.until > 0 /\ (known[b.o][b.side] = 0 \/ Clock(b.o) >= b.until - Rounding)
  /\ told' = (told \ {b}) \cup {[b EXCEPT !.until = 0]} /\ UNCHANGED <<requests, answers, used, known>>
End == (\E b \in Calls(S.call) : told' = told \ {b}) /\ UNCHANGED <<requests, answers, used, known>>
Crash == /\ told' = {b \in told : ProcessOf(b.o) # S.p}
         /\ known' = [o \in AllOwners |-> IF o <= Len(Traces[t].processes) /\ ProcessOf(o) = S.p THEN Unknown ELSE known[o]]
         /\ UNCHANGED <<requests, answers, used>>

Believes(b) == Clock(b.o) < b.until

(* Every request was executed or lost, every answer was read or lost, and nobody counts on the lock. *)
AllIsOver == requests = {} /\ answers = {} /\ told = {}

OfRequests ==
  CASE S.e = "send"    -> Send
    [] S.e = "resend"  -> Resend
    [] S.e = "lose"    -> Drops
    [] S.e = "read"    -> ReadAnswer
    [] S.e = "unread"  -> Unread
    [] S.e = "begin"   -> Begin
    [] S.e = "confirm" -> Confirm
    [] S.e = "lost"    -> Lost
    [] S.e = "end"     -> End
    [] S.e = "crash"   -> Crash
    [] OTHER -> FALSE
==============================================================================
