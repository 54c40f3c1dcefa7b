----------------------------- MODULE SingleFlight -----------------------------
(***************************************************************************)
(* One single flight: its lock, its result, and callers of several         *)
(* processes.                                                              *)
(*                                                                         *)
(* docs/single-flight.md: "Storing the result and releasing the lock is    *)
(* one step.  With separate steps, a caller could arrive between them and  *)
(* find a free lock without a result.  If the runner has lost the lock, it *)
(* stores nothing."  "Without [keepFor], only callers that asked while the *)
(* function ran get the result."  "A value that was computed from old data *)
(* is not stored after you have deleted it."                               *)
(*                                                                         *)
(* Moments are readings of the clock of the fencing tokens: each step of   *)
(* the server that reads it advances it.  Requests are executed at any     *)
(* time after they were sent, in any order.  A release that is executed    *)
(* after its runner has stopped waiting carries that moment.               *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS Callers, Keeping,   \* callers, and those among them that have keepFor
          Nobody, MaxReading, MaxForgotten, MaxLost

VARIABLES reading,   \* of the clock
          lock,      \* the caller that holds it, and runs
          result,    \* run, ended, before (whoever began to ask before this reading may have it), isKept, data
          wanted,    \* a caller was told to wait
          note,      \* the first and the last reading at which results were forgotten during this run; 0: none
          data,      \* how often the data changed that the function reads; each time the result is forgotten
          requests, answers,
          own,       \* of each caller: phase, begin, token, the data that its run has read, and the reading when it stopped
                     \* waiting for the answer to its release (0: it has not)
          asked,     \* of each caller: the reading and the data when it called
          got,       \* of each caller: what it was given
          told,      \* those who were told to wait for the present run, each with its begin
          promised,  \* those whom a run that has ended well serves
          newest,    \* the highest token of a run that has stored its result
          inVain,    \* a caller runs although the run that it waited for has ended well
          lost       \* how many locks have expired

vars == <<reading, lock, result, wanted, note, data, requests, answers, own, asked, got, told, promised, newest, inVain, lost>>

NoResult == [run |-> Nobody, token |-> 0, ended |-> 0, before |-> 0, isKept |-> FALSE, data |-> 0]
NoNote == [first |-> 0, last |-> 0]

Init == /\ reading = 1 /\ lock = Nobody /\ result = NoResult /\ wanted = FALSE /\ note = NoNote /\ data = 0
        /\ requests = {} /\ answers = {} /\ told = {} /\ promised = {} /\ newest = 0 /\ inVain = FALSE /\ lost = 0
        /\ own = [c \in Callers |-> [phase |-> "new", begin |-> 0, token |-> 0, data |-> 0, left |-> 0]]
        /\ asked = [c \in Callers |-> [reading |-> 0, data |-> 0]]
        /\ got = [c \in Callers |-> NoResult]

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
Advance == reading < MaxReading /\ reading' = reading + 1
OfServer == <<lock, result, wanted, note, told, promised, newest, inVain>>

------------------------------------------------------------------------------
(* Callers *)

Request(kind, c, parts, returned) ==
  [kind |-> kind, caller |-> c, begin |-> own[c].begin, parts |-> parts, returned |-> returned]

Call(c) == /\ own[c].phase = "new" /\ own' = [own EXCEPT ![c].phase = "asking"]
           /\ asked' = [asked EXCEPT ![c] = [reading |-> reading, data |-> data]]
           /\ requests' = requests \cup {Request("acquire", c, {}, FALSE)}
           /\ UNCHANGED <<reading, data, answers, got, lost, OfServer>>

(* The caller was woken, or asks once more. *)
AskAgain(c) == /\ own[c].phase = "waiting" /\ own' = [own EXCEPT ![c].phase = "asking"]
               /\ requests' = requests \cup {Request("acquire", c, {}, FALSE)}
               /\ UNCHANGED <<reading, data, answers, asked, got, lost, OfServer>>

(* What is done in one step: the result is stored, and the lock is released. *)
Steps == {{"store", "release"}}

Return(c) == /\ own[c].phase = "running" /\ own' = [own EXCEPT ![c].phase = "ended"]
             /\ requests' = requests \cup {Request("end", c, parts, TRUE) : parts \in Steps}
             /\ UNCHANGED <<reading, data, answers, asked, got, lost, OfServer>>

Throw(c) == /\ own[c].phase = "running" /\ own' = [own EXCEPT ![c].phase = "ended"]
            /\ requests' = requests \cup {Request("end", c, {"release"}, FALSE)}
            /\ UNCHANGED <<reading, data, answers, asked, got, lost, OfServer>>

(* The runner has its result, although its release has no answer. *)
StopWaiting(c) == /\ own[c].phase = "ended" /\ own' = [own EXCEPT ![c].phase = "left", ![c].left = reading]
                  /\ UNCHANGED <<reading, data, requests, answers, asked, got, lost, OfServer>>

Read(a) ==
  /\ answers' = answers \ {a}
  /\ own' = [own EXCEPT ![a.caller] =
       CASE a.kind = "acquired" -> [@ EXCEPT !.phase = "running", !.token = a.reading, !.data = a.data]
         [] a.kind = "busy" -> [@ EXCEPT !.phase = "waiting", !.begin = IF @ = 0 THEN a.reading ELSE @]
         [] a.kind = "result" -> [@ EXCEPT !.phase = "done"]]
  /\ got' = IF a.kind = "result" THEN [got EXCEPT ![a.caller] = a.result] ELSE got
  /\ UNCHANGED <<reading, data, requests, asked, lost, OfServer>>

------------------------------------------------------------------------------
(* Server *)

IsAwaited(begin) == begin > 0 /\ begin < result.before
IsKeptFor(c) == result.isKept /\ c \in Keeping
MayHave(c, begin) == result.run # Nobody /\ (IsAwaited(begin) \/ IsKeptFor(c))
LeavesWanted == TRUE

Answer(m, kind) == answers' = answers \cup {[kind |-> kind, caller |-> m.caller, reading |-> reading', data |-> data, result |-> result]}

BeginOf(m) == IF m.begin = 0 THEN reading' ELSE m.begin

Acquire(m) ==
  LET c == m.caller IN
  /\ Advance
  /\ CASE MayHave(c, m.begin) -> Answer(m, "result") /\ UNCHANGED OfServer
       [] ~MayHave(c, m.begin) /\ lock # Nobody ->
            /\ Answer(m, "busy") /\ wanted' = (wanted \/ LeavesWanted) /\ told' = told \cup {[caller |-> c, begin |-> BeginOf(m)]}
            /\ UNCHANGED <<lock, result, note, promised, newest, inVain>>
       [] OTHER -> /\ Answer(m, "acquired") /\ lock' = c /\ note' = NoNote
                   /\ told' = {} /\ inVain' = (inVain \/ c \in promised)
                   /\ UNCHANGED <<result, wanted, promised, newest>>

Holds(c) == lock = c
IsForgotten(c) == note.last > own[c].token
EndsAt(c) == IF own[c].left > 0 THEN own[c].left + 1 ELSE reading + 1
(* Whoever began to ask before this reading waited for this run. *)
ServesUntil(c) == IF IsForgotten(c) THEN Min(Max(note.first, own[c].token), EndsAt(c)) ELSE EndsAt(c)
Keeps(c) == c \in Keeping /\ ~IsForgotten(c)
IsStored(c) == Keeps(c) \/ wanted

(* Of a run that has lost the lock nothing is executed. *)
End(m) ==
  LET c == m.caller stores == "store" \in m.parts /\ m.returned /\ IsStored(c)
      served == IF m.returned THEN {w.caller : w \in {w \in told : w.begin < ServesUntil(c)}} ELSE {} IN
  /\ Holds(c) /\ Advance
  /\ result' = IF stores THEN [run |-> c, token |-> own[c].token, ended |-> EndsAt(c), before |-> ServesUntil(c),
                               isKept |-> Keeps(c), data |-> own[c].data] ELSE result
  /\ newest' = IF stores THEN Max(newest, own[c].token) ELSE newest
  /\ IF "release" \notin m.parts THEN UNCHANGED <<lock, wanted, promised>>
     ELSE lock' = Nobody /\ wanted' = FALSE /\ promised' = promised \cup served
  /\ UNCHANGED <<note, told, inVain, answers>>

Execute(m) == /\ requests' = requests \ {m} /\ IF m.kind = "acquire" THEN Acquire(m) ELSE End(m)
              /\ UNCHANGED <<data, own, asked, got, lost>>

(* The data changes, and then the result is forgotten. *)
NotesForgotten == TRUE
Noted == [first |-> IF note.first = 0 THEN reading' ELSE note.first, last |-> reading']
Forget == /\ data < MaxForgotten /\ data' = data + 1 /\ Advance /\ result' = NoResult /\ promised' = {}
          /\ note' = IF lock # Nobody /\ NotesForgotten THEN Noted ELSE note
          /\ UNCHANGED <<lock, wanted, told, newest, inVain, requests, answers, own, asked, got, lost>>

(* The lease of a paused runner ends. *)
Expire == /\ lock # Nobody /\ lost < MaxLost /\ lost' = lost + 1 /\ lock' = Nobody
          /\ UNCHANGED <<reading, result, wanted, note, data, requests, answers, own, asked, got, told, promised, newest, inVain>>

Next == \/ Forget \/ Expire
        \/ \E c \in Callers : Call(c) \/ AskAgain(c) \/ Return(c) \/ Throw(c) \/ StopWaiting(c)
        \/ \E m \in requests : Execute(m)
        \/ \E a \in answers : Read(a)
Spec == Init /\ [][Next]_vars

(* Of two callers with keepFor, it does not matter which. *)
Symmetric == Permutations(Keeping)

------------------------------------------------------------------------------
(* Promises *)

(* Whoever was told to wait for a run gets its result when it has ended well, and does not run. *)
NobodyRunsInVain == ~inVain
(* A caller without keepFor gets no result that ended, or that its runner had, before it called. *)
HadBefore(runner, moment) == own[runner].left > 0 /\ own[runner].left <= moment
NothingIsTooOld == \A c \in Callers \ Keeping : got[c].run # Nobody =>
  got[c].ended > asked[c].reading /\ ~HadBefore(got[c].run, asked[c].reading)
(* A caller that came after the data had changed gets no result that was computed from the old data. *)
NothingIsOutdated == \A c \in Callers : got[c].run # Nobody => got[c].data >= asked[c].data
(* A runner that has lost the lock stores nothing: it does not overwrite what a later run has stored. *)
TheNewestStays == result.run # Nobody => result.token = newest
==============================================================================
