------------------------------ MODULE ReadWrite ------------------------------
(***************************************************************************)
(* Readers and writers of one lock, and what is promised to them.  The     *)
(* server is in ReadWriteServer.                                           *)
(*                                                                         *)
(* docs/choosing-a-lock.md: "A waiting writer is served before readers     *)
(* that arrive after it".                                                  *)
(*                                                                         *)
(* A request is executed some time after it was sent.  If that is as long  *)
(* as the lease, its answer is of no use: the server has a holder who does *)
(* not know.  Lease is about requests that are repeated.                   *)
(***************************************************************************)
EXTENDS ReadWriteServer

------------------------------------------------------------------------------
(* Requests *)

MayRead(o) == Writes(o) \/ (Mode # "write" /\ (Reads(o) \/ ~IsBefore(o, line, TRUE)))
(* A reader waits for all readers, itself included. *)
WhyWriterWaits(o) == ~Writes(o) /\ (Mode = "write" \/ IsRead)
MayWrite(o, past) == ~WhyWriterWaits(o) /\ (past \/ Writes(o) \/ ~IsBefore(o, line, FALSE))

(* What the caller knows afterwards: it counts from the moment before the request was sent. *)
CountsFrom(sent) == sent
Hears(o, side, lease) == \E sent \in now - lease..now : belief' = [belief EXCEPT ![o][side] = Max(@, CountsFrom(sent) + lease)]
Arrivals(next) == SelectSeq(arrived, LAMBDA place : IsIn(place.owner, next))
Leaves(o) == line' = Without(line, o) /\ arrived' = Without(Arrivals(line), o)
Waits(o, writes) ==
  LET rest == IF IsIn(o, line) THEN line ELSE FromFirst(line) IN
  /\ line' = Entered(rest, o, writes)
  /\ arrived' = IF IsIn(o, line) THEN arrived ELSE Append(Arrivals(rest), Place(o, writes))
  /\ UNCHANGED <<mode, writer, until, readers, belief, wrong>>

WaitsTo(o, writes) == IsIn(o, line) /\ line[At(o, line)].writes = writes
ServedIf(isFree) == line' = (IF isFree THEN FromFirst(line) ELSE line) /\ arrived' = Arrivals(line')
Wrong(is, what) == IF is THEN {what} ELSE {}
Others == [i \in 1..Len(arrived) |-> line[At(arrived[i].owner, line)]]

(* `past`: a writer that tries once does not look into the line. *)
Read(o) ==
  /\ Lives(o) /\ belief[o].read <= now /\ ~WaitsTo(o, TRUE)
  /\ IF MayRead(o)
     THEN /\ TakeReader(o, terms[o]) /\ Hears(o, "read", terms[o]) /\ Leaves(o)
          /\ wrong' = wrong \cup Wrong(~Reads(o) /\ ~Writes(o) /\ IsBefore(o, Others, TRUE), "passed a writer")
     ELSE Waits(o, FALSE)
  /\ UNCHANGED <<now, terms, died>>
Write(o, past) ==
  /\ Lives(o) /\ belief[o].write <= now /\ ~WaitsTo(o, FALSE)
  /\ IF MayWrite(o, past)
     THEN /\ TakeWriter(o, WriteLease) /\ Hears(o, "write", WriteLease) /\ Leaves(o)
          /\ wrong' = wrong \cup Wrong(Reads(o) /\ ~Writes(o), "upgraded")
                            \cup Wrong(~past /\ ~Writes(o) /\ IsBefore(o, Others, FALSE), "overtook")
     ELSE ~past /\ Waits(o, TRUE)
  /\ UNCHANGED <<now, terms, died>>

RenewRead(o) == /\ Lives(o) /\ Reads(o) /\ TakeReader(o, terms[o]) /\ Hears(o, "read", terms[o])
                /\ UNCHANGED <<now, line, arrived, terms, died, wrong>>
RenewWrite(o) == /\ Lives(o) /\ Writes(o) /\ TakeWriter(o, WriteLease) /\ Hears(o, "write", WriteLease)
                 /\ UNCHANGED <<now, line, arrived, terms, died, wrong>>

(* Whoever releases stopped counting on it before. *)
ReleaseRead(o) ==
  /\ Lives(o) /\ Reads(o) /\ belief' = [belief EXCEPT ![o].read = 0]
  /\ LET left == [Fields EXCEPT ![o] = 0] IN
     IF Mode = "write" THEN Lock(mode, writer, until, left) /\ UNCHANGED <<line, arrived>>
     ELSE FitToReaders(left) /\ ServedIf(Longest(left) <= now)
  /\ UNCHANGED <<now, terms, died, wrong>>
ReleaseWrite(o) ==
  /\ Lives(o) /\ Writes(o) /\ belief' = [belief EXCEPT ![o].write = 0]
  /\ FitToReaders(Fields) /\ ServedIf(~IsRead \/ (FromFirst(line) # <<>> /\ ~FromFirst(line)[1].writes))
  /\ UNCHANGED <<now, terms, died, wrong>>

MayKeep(o) == Lives(o)
Keep(o) == /\ MayKeep(o) /\ IsIn(o, line) /\ line[At(o, line)].lapses > now /\ line' = [line EXCEPT ![At(o, line)].lapses = now + WaiterTimeout]
           /\ UNCHANGED <<now, mode, writer, until, readers, arrived, terms, belief, died, wrong>>
Leave(o) == Lives(o) /\ IsIn(o, line) /\ Leaves(o) /\ UNCHANGED <<now, mode, writer, until, readers, terms, belief, died, wrong>>
Die(o) == /\ \A p \in Owners : Lives(p)
          /\ died' = [died EXCEPT ![o] = now]
          /\ belief' = [belief EXCEPT ![o] = [read |-> 0, write |-> 0]]
          /\ UNCHANGED <<now, mode, writer, until, readers, line, arrived, terms, wrong>>
(* What has ended is as good as gone, so it makes no other states. *)
Ended(end) == IF end > now + 1 THEN end ELSE 0
Tick == /\ now < MaxTime /\ now' = now + 1
        /\ IF Ended(until) = 0 THEN Freed ELSE Lock(mode, writer, until, [o \in Owners |-> Ended(readers[o])])
        /\ belief' = [o \in Owners |-> [read |-> Ended(belief[o].read), write |-> Ended(belief[o].write)]]
        /\ UNCHANGED <<line, arrived, terms, died, wrong>>

Next == \/ Tick
        \/ \E o \in Owners : Read(o) \/ Write(o, FALSE) \/ Write(o, TRUE) \/ RenewRead(o) \/ RenewWrite(o)
                             \/ ReleaseRead(o) \/ ReleaseWrite(o) \/ Keep(o) \/ Leave(o) \/ Die(o)
Spec == Init /\ [][Next]_vars
Symmetric == Permutations(Owners)

------------------------------------------------------------------------------
(* Promises *)

BelievesToRead(o) == belief[o].read > now
BelievesToWrite(o) == belief[o].write > now
(* A writer excludes all others; what it reads itself is its own. *)
ReadersOrOneWriter == \A o, p \in Owners : BelievesToWrite(o) /\ (BelievesToRead(p) \/ BelievesToWrite(p)) => o = p
(* This includes a writer that goes on reading: nobody writes in between. *)
BeliefIsCovered == \A o \in Owners : /\ BelievesToRead(o) => Reads(o) /\ (Mode = "write" => Writes(o))
                                     /\ BelievesToWrite(o) => Writes(o)
(* A new reader lets the writers go first that are in line; a writer in line everybody who was before it. *)
NobodyIsOvertaken == wrong \cap {"passed a writer", "overtook"} = {}
(* As no new readers pass it, a writer in front waits only for those who hold the lock: then it is served. *)
AWriterIsServed == \A o \in Owners : FromFirst(line) # <<>> /\ Head(FromFirst(line)).owner = o /\ WaitsTo(o, TRUE) /\ ~IsRead /\ Mode # "write" => MayWrite(o, FALSE)
NobodyUpgrades == "upgraded" \notin wrong
(* What a dead process leaves behind ends. *)
Longer == CHOOSE lease \in Leases : \A other \in Leases : other <= lease
TheDeadMakeWay == \A o \in Owners : ~Lives(o) =>
  /\ IsIn(o, line) => line[At(o, line)].lapses <= died[o] + WaiterTimeout
  /\ Writes(o) \/ Reads(o) => now < died[o] + Longer
==============================================================================
