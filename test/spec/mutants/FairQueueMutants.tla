---------------------------- MODULE FairQueueMutants ---------------------------
(* One-line changes of FairQueue, each of which breaks a promise. *)
EXTENDS FairQueue

Anybody(o) == TRUE
InFront(sequence, o) == IF IsIn(o, sequence) THEN sequence ELSE <<o>> \o sequence
Everybody(sequence) == sequence
==============================================================================
