------------------------------- MODULE Several --------------------------------
(***************************************************************************)
(* One call for several names, each on a node of its own: all or none.     *)
(* lib/engine/several/all-or-none.ts: "When a lock is busy, the caller     *)
(* gives back what it has taken and waits for the busy lock alone. After   *)
(* it has got that lock, it tries the others again. A caller that has been *)
(* unsuccessful for long may hold locks while it waits, but only for a     *)
(* bounded time".  Other holds the second name, and waits inside its body  *)
(* for the first one.  A request is executed and answered at once, unless  *)
(* a fault makes it late, or loses its answer.  A release is repeated.     *)
(***************************************************************************)
EXTENDS Integers, TLC

CONSTANTS Callers, Other, Nobody, LeaseTime, Timeout, LongestHold, MaxTime, MaxIds, MaxFaults

VARIABLES now,
          held,   \* of each name: an owner id, and until when
          own,    \* what each caller knows: see New
          inside, \* Other is "out", "in" the second name and waits for the first one, or "done"
          late, copies, \* requests for a name that have not arrived yet; releases that may arrive once more
          left,   \* owner ids that are released until it is certain that they hold nothing
          faults, stuck, some \* for how long each caller and Other wait for each other; a body began with some names
vars == <<now, held, own, inside, late, copies, left, faults, stuck, some>>

(* `id`: its owner id for each name, of `used` altogether. `got`: until when it counts on the name. It asked for the *)
(* name `asks` at `asked`, or "waits" for `busy` alone. `over`: when it has to give back, or may hold names again.   *)
Names == {1, 2} \* as all processes sort them
Wants(c) == Names
IdOf(c, k) == <<c, k>>
None == [n \in Names |-> 0]
New == [phase |-> "tries", used |-> 0, id |-> None, got |-> None, busy |-> 0, asks |-> 0, asked |-> 0, over |-> 0]
Free == [owner |-> Nobody, until |-> 0]
Init == /\ now = 0 /\ held = [n \in Names |-> Free] /\ own = [c \in Callers |-> New] /\ inside = "out" /\ late = {}
        /\ copies = {} /\ left = {} /\ faults = 0 /\ stuck = [c \in Callers |-> 0] /\ some = FALSE

Holder(n) == IF held[n].until > now THEN held[n].owner ELSE Nobody
IsFreeFor(id, n) == Holder(n) \in {Nobody, id}
Lock(id, n, until) == held' = [held EXCEPT ![n] = [owner |-> id, until |-> until]]
Takes(id, n) == IF IsFreeFor(id, n) THEN Lock(id, n, now + LeaseTime) ELSE UNCHANGED held
Frees(id, n) == IF Holder(n) = id THEN Lock(Nobody, n, 0) ELSE UNCHANGED held
Spend == faults < MaxFaults /\ faults' = faults + 1
------------------------------------------------------------------------------
(* Callers.  They give back what they have got, and what they may get by a request without an answer. *)

Got(s) == {n \in Names : s.got[n] # 0}
Undone(c, n, id, deadline) == [name |-> n, owner |-> IdOf(c, id), deadline |-> deadline]
Given(c, s) == {Undone(c, n, s.id[n], -1) : n \in Got(s)}
InDoubt(c, s) == IF s.asks = 0 THEN {} ELSE {Undone(c, s.asks, s.id[s.asks], s.asked + Timeout)}
WithNothing(s, phase) == [New EXCEPT !.phase = phase, !.used = IF phase = "left" THEN 0 ELSE s.used]
WithoutDoubt(s) == IF s.asks = 0 THEN s ELSE [s EXCEPT !.id[s.asks] = 0, !.asks = 0, !.asked = 0]
Unused(s) == [WithoutDoubt(s) EXCEPT !.used = @ - 1] \* an owner id that was found busy is as good as new
Knows(c, s) == own' = [own EXCEPT ![c] = s]
GivesBack(c, s, next) == Knows(c, next) /\ left' = left \cup Given(c, s) \cup InDoubt(c, s)

CountsFrom(sent) == sent
Gets(s, n) == [s EXCEPT !.got[n] = CountsFrom(s.asked) + LeaseTime, !.asks = 0, !.asked = 0, !.busy = 0,
                        !.phase = IF @ = "waits" THEN "tries" ELSE @,
                        !.over = IF s.phase = "holds" /\ Got(s) = {} THEN now + LongestHold ELSE @]
(* It waits for the busy name alone.  Whoever was passed over will hold names while it waits. *)
AtBusy(s, n) == {[WithNothing(s, "waits") EXCEPT !.busy = n], WithNothing(s, "holds")}
Answered(c, s, n, ok) ==
  CASE ok /\ s.asked + LeaseTime > now -> Knows(c, Gets(s, n)) /\ UNCHANGED left
    [] ok -> GivesBack(c, s, WithNothing(s, "tries"))
    [] s.phase = "tries" -> \E next \in AtBusy(Unused(s), n) : GivesBack(c, WithoutDoubt(s), next)
    [] OTHER -> Knows(c, Unused(s)) /\ UNCHANGED left
NextOf(names) == {n \in names : \A m \in names : n <= m}
Missing(c) == Wants(c) \ Got(own[c])
Wanted(c) == IF own[c].phase = "waits" THEN {own[c].busy} ELSE NextOf(Missing(c))
NewId(s) == s.used + 1
(* Whoever waits for a name asks when it is free. *)
Ask(c) == \E n \in Wanted(c) : LET k == NewId(own[c]) id == IdOf(c, k) ok == IsFreeFor(id, n)
                                        s == [own[c] EXCEPT !.id[n] = k, !.asks = n, !.asked = now, !.used = k] IN
  /\ (own[c].phase = "tries" \/ (ok /\ own[c].phase \in {"waits", "holds"})) /\ own[c].asks = 0 /\ own[c].used < MaxIds
  /\ \/ Answered(c, s, n, ok) /\ Takes(id, n) /\ UNCHANGED <<late, faults>>
     \/ Spend /\ Knows(c, s) /\ Takes(id, n) /\ UNCHANGED <<late, left>>
     \/ Spend /\ Knows(c, s) /\ late' = late \cup {[name |-> n, owner |-> id, sent |-> now]} /\ UNCHANGED <<held, left>>
  /\ UNCHANGED <<now, inside, copies, stuck, some>>
IsLate(m, time) == time > m.sent + Timeout
IsAwaited(m) == own[m.owner[1]].asks = m.name /\ own[m.owner[1]].id[m.name] = m.owner[2]
Arrive(m) == LET c == m.owner[1] ok == IsFreeFor(m.owner, m.name) IN
  /\ ~IsLate(m, now) /\ IF IsAwaited(m) THEN Answered(c, own[c], m.name, ok) ELSE UNCHANGED <<own, left>>
  /\ late' = late \ {m} /\ Takes(m.owner, m.name) /\ UNCHANGED <<now, inside, copies, faults, stuck, some>>
Alone == UNCHANGED <<now, held, inside, late, copies, faults, stuck>>
Becomes(c, phase) == GivesBack(c, own[c], WithNothing(own[c], phase)) /\ Alone /\ UNCHANGED some
(* No answer came.  A caller that waits goes on under another owner id. *)
GiveUp(c) == /\ own[c].asks # 0
             /\ IF own[c].phase = "tries" THEN Becomes(c, "tries")
                ELSE Knows(c, WithoutDoubt(own[c])) /\ left' = left \cup InDoubt(c, own[c]) /\ Alone /\ UNCHANGED some
IsOver(s) == s.phase = "holds" /\ Got(s) # {} /\ now >= s.over
AfterOver(s) == [WithNothing(s, "pauses") EXCEPT !.over = now + LongestHold]
Over(c) == IsOver(own[c]) /\ GivesBack(c, own[c], AfterOver(own[c])) /\ Alone /\ UNCHANGED some
Resume(c) == own[c].phase = "pauses" /\ now >= own[c].over /\ Becomes(c, "holds")
Leave(c) == own[c].phase # "left" /\ Becomes(c, "left") \* its body has ended, or it is refused while it waits
Believes(c, n) == own[c].got[n] > now
(* With all names, it begins, unless one of them was lost meanwhile. *)
IsStale(c) == \E n \in Wants(c) : ~Believes(c, n)
Begin(c) == /\ own[c].phase \in {"tries", "holds"} /\ Missing(c) = {}
            /\ IF IsStale(c) THEN Becomes(c, "tries")
               ELSE /\ Knows(c, [own[c] EXCEPT !.phase = "runs", !.over = 0]) /\ Alone /\ UNCHANGED left
                    /\ some' = (some \/ \E n \in Wants(c) : Holder(n) # IdOf(c, own[c].id[n]))
Renew(c) == \E n \in Names : /\ own[c].got[n] > now /\ Holder(n) = IdOf(c, own[c].id[n]) /\ Takes(Holder(n), n)
  /\ own' = [own EXCEPT ![c].got[n] = now + LeaseTime]
  /\ UNCHANGED <<now, inside, late, copies, left, faults, stuck, some>>
------------------------------------------------------------------------------
(* Releases, Other, and time *)

MayEnd(u) == now > u.deadline
IsDone(u) == Holder(u.name) # u.owner /\ ~MayEnd(u)
Release(u) == /\ ~IsDone(u) /\ Frees(u.owner, u.name) /\ left' = IF MayEnd(u) THEN left \ {u} ELSE left
              /\ (Spend /\ copies' = copies \cup {u}) \/ UNCHANGED <<copies, faults>>
              /\ UNCHANGED <<now, own, inside, late, stuck, some>>
ArriveAgain(u) == copies' = copies \ {u} /\ Frees(u.owner, u.name)
                  /\ UNCHANGED <<now, own, inside, late, left, faults, stuck, some>>
OfOther == UNCHANGED <<now, own, late, copies, left, faults, stuck, some>>
Enter == inside = "out" /\ Holder(2) = Nobody /\ inside' = "in" /\ Lock(Other, 2, MaxTime + 1) /\ OfOther
Exit == inside = "in" /\ Holder(1) = Nobody /\ inside' = "done" /\ Lock(Nobody, 2, 0) /\ OfOther
WaitsFor(c, n) == own[c].phase = "holds" /\ n \in NextOf(Missing(c))
IsStuck(c) == inside = "in" /\ own[c].got[1] > now /\ WaitsFor(c, 2)
HasToAct == \/ (\E u \in left : ~IsDone(u)) \/ (inside = "in" /\ Holder(1) = Nobody)
            \/ \E c \in Callers : IsOver(own[c]) \/ (own[c].asks # 0 /\ now >= own[c].asked + Timeout)
Ended(end) == IF end = 0 \/ end > now + 1 THEN end ELSE -1
Tick == /\ now < MaxTime /\ now' = now + 1 /\ ~HasToAct /\ UNCHANGED <<inside, copies, left, faults, some>>
        /\ held' = [n \in Names |-> IF held[n].until > now + 1 THEN held[n] ELSE Free]
        /\ own' = [c \in Callers |-> [own[c] EXCEPT !.got = [n \in Names |-> Ended(@[n])]]]
        /\ late' = {m \in late : ~IsLate(m, now + 1)}
        /\ stuck' = [c \in Callers |-> IF IsStuck(c) THEN stuck[c] + 1 ELSE 0]
Next == \/ Tick \/ Enter \/ Exit
        \/ \E m \in late : Arrive(m)
        \/ \E u \in left : Release(u)
        \/ \E u \in copies : ArriveAgain(u)
        \/ \E c \in Callers : Ask(c) \/ GiveUp(c) \/ Over(c) \/ Resume(c) \/ Renew(c) \/ Begin(c) \/ Leave(c)
Spec == Init /\ [][Next]_vars
Symmetric == Permutations(Callers)
------------------------------------------------------------------------------
OneBelieves == \A n \in Names, c \in Callers : Believes(c, n) => \A d \in Callers : Believes(d, n) => c = d
BeliefIsCovered == \A n \in Names, c \in Callers : Believes(c, n) => Holder(n) = IdOf(c, own[c].id[n])
AllOrNone == ~some
(* Callers of several names never wait for each other; one of them and somebody else no longer than it may hold. *)
IsWaitingWith(c, n, m) == Believes(c, n) /\ WaitsFor(c, m)
NoCircleOfCallers == \A c \in Callers, n, m \in Names :
  IsWaitingWith(c, n, m) => ~\E d \in Callers : IsWaitingWith(d, m, n)
EveryCircleEnds == \A c \in Callers : stuck[c] <= LongestHold
NothingWhileItWaits == \A c \in Callers : own[c].phase \in {"waits", "pauses", "left"} => Got(own[c]) = {}
(* Whatever a node holds, a caller uses it, or releases it. *)
IsOfOthers(owner) == owner \in {Nobody, Other}
IsUsed(n, owner) == \E c \in Callers : own[c].id[n] # 0 /\ owner = IdOf(c, own[c].id[n])
NothingIsLeft == \A n \in Names : \/ IsOfOthers(Holder(n)) \/ IsUsed(n, Holder(n))
                                  \/ \E u \in left : u.name = n /\ u.owner = Holder(n)
==============================================================================
