--------------------------- MODULE ReadWriteServer ---------------------------
(***************************************************************************)
(* What ReadWrite is about: a read/write lock on the server, with a lease  *)
(* for each reader, and the line in front of it.                           *)
(*                                                                         *)
(* lib/backends/redis/scripts/includes/read-write/read-lease.lua: "Each    *)
(* reader has a lease in a key beside the lock. The lock's lease is the    *)
(* longest of them."  Whoever the lock is free for is only told, and asks. *)
(***************************************************************************)
EXTENDS Integers, Sequences, TLC

CONSTANTS Owners, Nobody, Leases, WriteLease, WaiterTimeout, MaxTime

VARIABLES now, mode, writer,
          until,    \* when the key of the lock ends
          readers,  \* when the lease of each reader ends; 0: it has no field in the lock
          line,     \* places: an owner, whether it writes, and when the place lapses
          arrived,  \* the same owners, as they came
          terms,    \* the lease with which each owner reads
          belief,   \* until when each counts on reading and on writing
          died,     \* when a process ended without a word; MaxTime + 1: it lives
          wrong     \* what should never happen

vars == <<now, mode, writer, until, readers, line, arrived, terms, belief, died, wrong>>

Nothing == [o \in Owners |-> 0]
Init == /\ now = 0 /\ mode = "free" /\ writer = Nobody /\ until = 0 /\ readers = Nothing
        /\ line = <<>> /\ arrived = <<>> /\ terms \in [Owners -> Leases]
        /\ belief = [o \in Owners |-> [read |-> 0, write |-> 0]] /\ died = [o \in Owners |-> MaxTime + 1] /\ wrong = {}

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
Lives(o) == died[o] > MaxTime

------------------------------------------------------------------------------
(* The lock.  With its key, everything in it is gone. *)

Key == until > now
Mode == IF Key THEN mode ELSE "free"
Fields == IF Key THEN readers ELSE Nothing
Writes(o) == Key /\ writer = o
Reads(o) == Fields[o] > now
Longest(fields) == LET ends == {fields[o] : o \in Owners} IN CHOOSE end \in ends : \A other \in ends : other <= end
IsRead == Longest(Fields) > now

Lock(m, w, end, fields) == mode' = m /\ writer' = w /\ until' = end /\ readers' = fields
Freed == Lock("free", Nobody, 0, Nothing)

AfterRead(o, lease) == [Fields EXCEPT ![o] = now + lease]
(* The lock lasts as long as its readers. *)
ReadUntil(o, lease) == Max(IF Key THEN until ELSE 0, now + lease)
TakeReader(o, lease) ==
  Lock(IF Mode = "free" THEN "read" ELSE mode, IF Key THEN writer ELSE Nobody, ReadUntil(o, lease), AfterRead(o, lease))
(* The lock lasts as long as its writer may write, and as that writer may read. *)
WriteUntil(o, lease) == Max(now + lease, Fields[o])
TakeWriter(o, lease) == Lock("write", o, WriteUntil(o, lease), Fields)
FitToReaders(fields) == IF Longest(fields) > now THEN Lock("read", Nobody, Longest(fields), fields) ELSE Freed

------------------------------------------------------------------------------
(* The line.  A place that has lapsed is in nobody's way, but its owner may still ask for it. *)

Place(o, writes) == [owner |-> o, writes |-> writes, lapses |-> now + WaiterTimeout]
RECURSIVE FromFirst(_)
FromFirst(places) == IF places = <<>> \/ Head(places).lapses > now THEN places ELSE FromFirst(Tail(places))
IsIn(o, places) == \E i \in 1..Len(places) : places[i].owner = o
Without(places, o) == SelectSeq(places, LAMBDA place : place.owner # o)
At(o, places) == IF IsIn(o, places) THEN CHOOSE i \in 1..Len(places) : places[i].owner = o ELSE Len(places) + 1
(* Who has to go first: readers go past other readers. *)
IsBefore(o, places, reads) == \E i \in 1..At(o, places) - 1 : places[i].lapses > now /\ (places[i].writes \/ ~reads)
Entered(places, o, writes) ==
  IF IsIn(o, places) THEN [places EXCEPT ![At(o, places)] = Place(o, writes)] ELSE Append(places, Place(o, writes))
==============================================================================
