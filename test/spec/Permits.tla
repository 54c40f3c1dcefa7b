-------------------------------- MODULE Permits --------------------------------
(***************************************************************************)
(* A lock that n may hold, for callers with different n, and its line.     *)
(*                                                                         *)
(* lib/backends/redis/scripts/includes/permits/first-to-end.lua: "A lock   *)
(* that n may hold is a zset: each owner, and when its lease ends, in ms   *)
(* of the server's time. The key lasts until the latest of these times."   *)
(*                                                                         *)
(* A request is executed some time after it was sent, at the latest at its *)
(* deadline.  Until then, its caller may have gone.  If it is executed as  *)
(* late as the lease is long, its answer is of no use.  Whether others     *)
(* listen outside the line is not in it.                                   *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS Owners, Limits, Leases, Timeout, WaiterTimeout, MaxTime

VARIABLES now,
          ends,      \* the zset: when the lease of each owner ends; 0: it is not in it
          until,     \* when the key ends
          line,      \* places: an owner, and when its place lapses
          limit,     \* of each owner: its n
          phase,     \* of each owner id: "new", "asks", "left"
          terms,     \* the lease that each owner asks for
          belief,    \* until when each counts on its permit
          since,     \* when it sent its request; when it left
          granted,   \* those that got a permit, in this order
          overtaken  \* somebody got a permit although a place before it had room

vars == <<now, ends, until, line, limit, phase, terms, belief, since, granted, overtaken>>

Init == /\ now = 0 /\ ends = [o \in Owners |-> 0] /\ until = 0 /\ line = <<>> /\ phase = [o \in Owners |-> "new"]
        /\ limit \in [Owners -> Limits]
        /\ terms \in [Owners -> Leases] /\ belief = [o \in Owners |-> 0] /\ since = [o \in Owners |-> 0]
        /\ granted = <<>> /\ overtaken = FALSE

Max(a, b) == IF a > b THEN a ELSE b
In == IF until > now THEN ends ELSE [o \in Owners |-> 0]
Holders == {o \in Owners : In[o] > now}
HasRoom(n, zset) == Cardinality({o \in Owners : zset[o] > now}) < n
IsIn(o, places) == \E i \in 1..Len(places) : places[i].owner = o
Without(places, o) == SelectSeq(places, LAMBDA place : place.owner # o)
RECURSIVE FromFirst(_)
FromFirst(places) == IF places = <<>> \/ Head(places).lapses > now THEN places ELSE FromFirst(Tail(places))

(* The key lasts as long as the last lease. *)
Fit(zset) == LET all == {zset[o] : o \in Owners} IN CHOOSE end \in all : \A other \in all : other <= end
Current(zset) == [o \in Owners |-> IF zset[o] > now THEN zset[o] ELSE 0]
Taken(zset, o, lease) == [Current(zset) EXCEPT ![o] = now + lease]

(* Permits go to the first place for which there is room, as long as there is one. *)
State(zset, places, order) == [zset |-> zset, line |-> places, order |-> order]
RoomFor(o, zset) == HasRoom(limit[o], zset)
Able(places, zset) == {i \in 1..Len(places) : places[i].lapses > now /\ RoomFor(places[i].owner, zset)}
Order(order, o) == Append(SelectSeq(order, LAMBDA p : p # o), o)
RECURSIVE Served(_)
Served(s) ==
  LET places == FromFirst(s.line)
      able == Able(places, s.zset) IN
  IF able = {} THEN [s EXCEPT !.line = places]
  ELSE LET o == places[CHOOSE i \in able : \A j \in able : i <= j].owner IN
       Served(State(Taken(s.zset, o, terms[o]), Without(places, o), Order(s.order, o)))

Is == State(In, line, granted)
Becomes(s) == ends' = s.zset /\ until' = Fit(s.zset) /\ line' = s.line /\ granted' = SelectSeq(s.order, LAMBDA o : s.zset[o] > now)

------------------------------------------------------------------------------
(* Requests *)

CountsFrom(sent) == sent
(* An answer is of use to a caller that is still there. *)
Hears(o) == IF phase[o] # "asks" THEN UNCHANGED belief
            ELSE \E sent \in now - terms[o]..now : belief' = [belief EXCEPT ![o] = Max(@, CountsFrom(sent) + terms[o])]

Lapse == now + WaiterTimeout
Appended(places, place) == Append(places, place)
IsBefore(o, places) == places # <<>> /\ Head(places).owner # o
Ask(o) == /\ phase[o] = "new" /\ phase' = [phase EXCEPT ![o] = "asks"] /\ since' = [since EXCEPT ![o] = now]
          /\ UNCHANGED <<now, ends, until, line, limit, terms, belief, granted, overtaken>>

(* Whether the request of a caller, or what is left of it on the way, may still be executed. *)
MayCome(o) == phase[o] # "new" /\ (phase[o] = "left" => now <= since[o] + Timeout)
MayTake(o, s) == o \in {p \in Owners : s.zset[p] > now} \/ HasRoom(limit[o], s.zset)

(* A caller that tries once does not look into the line. *)
Try(o) == /\ MayCome(o) /\ ~IsIn(o, line) /\ MayTake(o, Is)
          /\ Becomes(State(Taken(In, o, terms[o]), line, IF o \in Holders THEN granted ELSE Order(granted, o))) /\ Hears(o)
          /\ UNCHANGED <<now, limit, phase, terms, since, overtaken>>

(* Whoever waits lets the first place go first, if there is room for it. *)
Enter(o) ==
  LET s == IF o \notin Holders /\ MayTake(o, Is) /\ IsBefore(o, FromFirst(line)) THEN Served(Is) ELSE Is IN
  /\ MayCome(o) /\ belief[o] <= now
  /\ IF MayTake(o, s)
     THEN /\ Becomes(State(Taken(s.zset, o, terms[o]), Without(s.line, o), IF s.zset[o] > now THEN s.order ELSE Order(s.order, o)))
          /\ Hears(o)
          /\ overtaken' = (overtaken \/ (In[o] <= now /\ \E i \in 1..Len(s.line) : s.line[i].lapses > now /\
               limit[s.line[i].owner] >= limit[o] /\ \A j \in 1..i : s.line[j].owner # o))
     ELSE /\ LET place == [owner |-> o, lapses |-> Lapse] IN
             Becomes([s EXCEPT !.line = IF IsIn(o, @) THEN [i \in 1..Len(@) |-> IF @[i].owner = o THEN place ELSE @[i]]
                                        ELSE Appended(FromFirst(@), place)])
          /\ UNCHANGED <<belief, overtaken>>
  /\ UNCHANGED <<now, limit, phase, terms, since>>

Renew(o) == /\ phase[o] = "asks" /\ belief[o] > now /\ o \in Holders
            /\ Becomes(State(Taken(In, o, terms[o]), line, granted)) /\ Hears(o)
            /\ UNCHANGED <<now, limit, phase, terms, since, overtaken>>

(* A caller that goes or dies.  Its place, or its permit, may stay.  What is still on the way may come after it. *)
Go(o) == /\ phase[o] = "asks" /\ phase' = [phase EXCEPT ![o] = "left"] /\ since' = [since EXCEPT ![o] = now]
         /\ belief' = [belief EXCEPT ![o] = 0] /\ UNCHANGED <<now, ends, until, line, limit, terms, granted, overtaken>>
Release(o) == /\ phase[o] = "left" /\ o \in Holders /\ Becomes(Served(State([Current(In) EXCEPT ![o] = 0], line, granted)))
              /\ UNCHANGED <<now, limit, phase, terms, belief, since, overtaken>>
Leave(o) == /\ phase[o] = "left" /\ IsIn(o, line) /\ Becomes(Served([Is EXCEPT !.line = Without(line, o)]))
            /\ UNCHANGED <<now, limit, phase, terms, belief, since, overtaken>>
MayKeep(o) == phase[o] = "asks"
Keep(o) == /\ MayKeep(o) /\ \E i \in 1..Len(line) : line[i].owner = o /\ line[i].lapses > now
           /\ Becomes(Served([Is EXCEPT !.line = [i \in 1..Len(line) |-> IF line[i].owner = o THEN [line[i] EXCEPT !.lapses = now + WaiterTimeout] ELSE line[i]]]))
           /\ UNCHANGED <<now, limit, phase, terms, belief, since, overtaken>>

Ended(end) == IF end > now + 1 THEN end ELSE 0
Tick == /\ now < MaxTime /\ now' = now + 1 /\ UNCHANGED <<line, limit, phase, terms, since, overtaken>>
        /\ ends' = [o \in Owners |-> Ended(In[o])] /\ until' = Ended(until) /\ granted' = SelectSeq(granted, LAMBDA o : In[o] > now + 1)
        /\ belief' = [o \in Owners |-> IF belief[o] > now + 1 THEN belief[o] ELSE 0]

Next == Tick \/ \E o \in Owners : Ask(o) \/ Try(o) \/ Enter(o) \/ Renew(o) \/ Go(o) \/ Release(o) \/ Leave(o) \/ Keep(o)
Spec == Init /\ [][Next]_vars
Symmetric == Permutations(Owners)

------------------------------------------------------------------------------
(* Promises *)

Earlier(o) == {p \in Holders : \E i, j \in 1..Len(granted) : i < j /\ granted[i] = p /\ granted[j] = o}
(* Whoever got a permit found fewer than its n.  So there are never more than the largest n of those who hold one. *)
NeverMoreThanN == \A o \in Holders : Cardinality(Earlier(o)) < limit[o]
BeliefIsCovered == \A o \in Owners : belief[o] > now => o \in Holders
(* No permit is lost for good: what a caller left behind, or what was executed after it had gone, ends. *)
Longer == CHOOSE lease \in Leases : \A other \in Leases : other <= lease
NothingIsLeft == \A o \in Owners : phase[o] = "left" /\ o \in Holders =>
                   In[o] <= since[o] + Timeout + WaiterTimeout + Longer
TheDeadMakeWay == \A i \in 1..Len(line) : phase[line[i].owner] = "left" => line[i].lapses <= since[line[i].owner] + Timeout + WaiterTimeout
(* Nobody goes past a place that has as large an n.  Others go past a place with a smaller n, for which there is no room. *)
NobodyIsOvertaken == ~overtaken
==============================================================================
