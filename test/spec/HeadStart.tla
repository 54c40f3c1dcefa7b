------------------------------- MODULE HeadStart -------------------------------
(***************************************************************************)
(* Waiters outside the line of a lock: a thread of Redisson, or of an      *)
(* earlier version of this library.  They hear of each release and ask.    *)
(*                                                                         *)
(* docs/internals/decisions/line.md: "every second release leaves the lock *)
(* free, and they have a head start of 10 ms.  The first place is told     *)
(* why, and asks after that.  Nobody is granted the lock meanwhile."       *)
(*                                                                         *)
(* Line is about everything else: places that lapse, lost messages, and    *)
(* what a process believes.  Here each message arrives before time passes. *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS Processes, Nobody, Outsider,
          HeadStart, \* how long a release leaves the lock to the outsider, who asks within this time
          Interval,  \* how often a process keeps its place
          Lease,     \* with which a place is granted the lock
          MaxDeaths, MaxTime

VARIABLES now, holder,
          ends,      \* when the lease ends of a process that was granted the lock and is dead
          line,      \* processes, the first place first
          headStart, \* until when the lock is left to the outsider; None after the line was granted the lock
          asks,      \* when a process asks that was told to
          keeps,     \* when a process keeps its place
          dead,
          outsider,  \* "away", "tries", "listens" or "holds"
          heard,     \* when it heard of a release
          passed,    \* how many of those in line got the lock while it listened
          left,      \* how many releases in a row left the lock free
          idle,      \* for how long the lock has been in nobody's use, although somebody in line lives
          overtaken

vars == <<now, holder, ends, line, headStart, asks, keeps, dead, outsider, heard, passed, left, idle, overtaken>>

None == MaxTime + HeadStart + Interval
Init == /\ now = 0 /\ holder = Nobody /\ ends = None /\ line = <<>> /\ headStart = None
        /\ asks = [p \in Processes |-> None] /\ keeps = asks /\ dead = {}
        /\ outsider = "away" /\ heard = None /\ passed = 0 /\ left = 0 /\ idle = 0 /\ overtaken = FALSE

Min(a, b) == IF a < b THEN a ELSE b
InLine(p) == \E i \in 1..Len(line) : line[i] = p
Without(sequence, p) == SelectSeq(sequence, LAMBDA other : other # p)
Entered(sequence, p) == IF p = Nobody \/ \E i \in 1..Len(sequence) : sequence[i] = p THEN sequence ELSE Append(sequence, p)

------------------------------------------------------------------------------
(* The server *)

Listens == outsider = "listens"
(* A process has the lock, by a grant or because it asked, and `newcomer` enters the line. *)
Gets(p, newcomer) ==
  /\ holder' = p /\ ends' = IF p \in dead THEN now + Lease ELSE None
  /\ line' = Entered(Without(line, p), IF newcomer = p THEN Nobody ELSE newcomer)
  /\ asks' = [asks EXCEPT ![p] = None]
  /\ keeps' = [q \in Processes |-> IF q = p THEN None ELSE IF q = newcomer THEN now + Interval ELSE keeps[q]]
  /\ idle' = IF p \in dead THEN idle ELSE 0
  /\ passed' = IF Listens /\ InLine(p) THEN passed + 1 ELSE passed
  /\ overtaken' = (overtaken \/ (line # <<>> /\ Head(line) # p))

(* When a process asks that was told of a head start.  A second message does not make it later. *)
AsksAfter(until) == until
LeavesFree(isRelease) == headStart = None /\ isRelease /\ Listens
IsLeftToOthers(isRelease) == headStart # None /\ headStart > now /\ ~isRelease
(* What a release has left free was granted since then. *)
Granted(time) == None

(* A lock that is free, although somebody is in line. *)
Serve(isRelease, newcomer) ==
  IF LeavesFree(isRelease) \/ IsLeftToOthers(isRelease)
  THEN /\ headStart' = IF isRelease THEN now + HeadStart ELSE headStart
       /\ holder' = Nobody /\ ends' = None /\ line' = Entered(line, newcomer)
       /\ asks' = [asks EXCEPT ![Head(line)] = Min(@, AsksAfter(now + HeadStart))]
       /\ keeps' = IF newcomer = Nobody THEN keeps ELSE [keeps EXCEPT ![newcomer] = now + Interval]
       /\ left' = IF isRelease THEN left + 1 ELSE left
       /\ UNCHANGED <<passed, idle, overtaken>>
  ELSE headStart' = Granted(headStart) /\ left' = 0 /\ Gets(Head(line), newcomer)

MayTake(p) == line = <<>> \/ Head(line) = p
Enter(p) == IF holder # Nobody
            THEN /\ line' = Entered(line, p) /\ keeps' = [keeps EXCEPT ![p] = now + Interval] /\ asks' = [asks EXCEPT ![p] = None]
                 /\ UNCHANGED <<holder, ends, headStart, passed, left, idle, overtaken>>
            ELSE IF MayTake(p) THEN Gets(p, Nobody) /\ UNCHANGED <<headStart, left>> ELSE Serve(FALSE, p)

------------------------------------------------------------------------------
(* The processes in line *)

Lives(p) == p \notin dead
Come(p) == Lives(p) /\ holder # p /\ ~InLine(p) /\ Enter(p) /\ UNCHANGED <<now, dead, outsider, heard>>
Ask(p) == Lives(p) /\ asks[p] <= now /\ Enter(p) /\ UNCHANGED <<now, dead, outsider, heard>>
ServesAgain == holder = Nobody
Keep(p) == /\ Lives(p) /\ keeps[p] <= now
           /\ IF ServesAgain THEN Serve(FALSE, p)
              ELSE keeps' = [keeps EXCEPT ![p] = now + Interval]
                   /\ UNCHANGED <<holder, ends, line, headStart, asks, passed, left, idle, overtaken>>
           /\ UNCHANGED <<now, dead, outsider, heard>>
Release(p) == /\ Lives(p) /\ holder = p /\ heard' = IF Listens /\ heard = None THEN now ELSE heard
              /\ IF line = <<>> THEN /\ holder' = Nobody
                                     /\ UNCHANGED <<ends, line, headStart, asks, keeps, passed, left, idle, overtaken>>
                 ELSE Serve(TRUE, Nobody)
              /\ UNCHANGED <<now, dead, outsider>>
Die(p) == /\ Cardinality(dead) < MaxDeaths /\ Lives(p) /\ InLine(p) /\ dead' = dead \cup {p}
          /\ UNCHANGED <<now, holder, ends, line, headStart, asks, keeps, outsider, heard, passed, left, idle, overtaken>>

------------------------------------------------------------------------------
(* The waiter outside the line, and time *)

(* It tries, begins to listen, tries again, and then whenever it hears of a release. *)
Next(state) == CASE state = "away" -> "tries" [] OTHER -> "listens"
Try == /\ outsider \in {"away", "tries"} \/ (Listens /\ heard # None)
       /\ IF holder = Nobody THEN holder' = Outsider /\ outsider' = "holds" /\ idle' = 0
          ELSE outsider' = Next(outsider) /\ UNCHANGED <<holder, idle>>
       /\ heard' = None /\ passed' = IF Listens THEN passed ELSE 0
       /\ UNCHANGED <<now, ends, line, headStart, asks, keeps, dead, left, overtaken>>
(* Whoever is first listens to its release. *)
GiveBack == /\ outsider = "holds" /\ outsider' = "away" /\ holder' = Nobody /\ passed' = 0
            /\ asks' = IF line = <<>> THEN asks ELSE [asks EXCEPT ![Head(line)] = now]
            /\ UNCHANGED <<now, ends, line, headStart, keeps, dead, heard, left, idle, overtaken>>

HasToAct(p) == Lives(p) /\ (asks[p] <= now \/ keeps[p] <= now)
IsIdle == (holder = Nobody \/ holder \in dead) /\ \E p \in Processes : Lives(p) /\ InLine(p)
Tick == /\ now < MaxTime /\ now' = now + 1 /\ \A p \in Processes : ~HasToAct(p)
        /\ heard = None \/ now + 1 < heard + HeadStart
        /\ idle' = IF IsIdle THEN idle + 1 ELSE 0
        /\ IF ends = now + 1 THEN holder' = Nobody /\ ends' = None ELSE UNCHANGED <<holder, ends>>
        /\ UNCHANGED <<line, headStart, asks, keeps, dead, outsider, heard, passed, left, overtaken>>

Step == \/ Tick \/ Try \/ GiveBack
        \/ \E p \in Processes : Come(p) \/ Ask(p) \/ Keep(p) \/ Release(p) \/ Die(p)
Spec == Init /\ [][Step]_vars
Symmetric == Permutations(Processes)

------------------------------------------------------------------------------
(* Promises *)

(* At most one of those in line gets the lock while somebody outside it listens, and one more for each that has died. *)
TheOutsiderIsServed == passed <= 1 + Cardinality(dead)
(* The line is not kept waiting for the outsider twice in a row. *)
TheLineIsServed == left <= 1
(* A head start that nobody uses costs no more than itself.  If whoever was told has died, it is granted the lock by the *)
(* next one that keeps a place after the head start, and another one by the next after that lease.                      *)
Intervals(time) == ((time + Interval - 1) \div Interval) * Interval
NobodyWaitsInVain == idle <= HeadStart + IF dead = {} THEN 0 ELSE Interval + Cardinality(dead) * Intervals(Lease)
NobodyIsOvertaken == ~overtaken
==============================================================================
