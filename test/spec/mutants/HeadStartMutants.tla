--------------------------- MODULE HeadStartMutants ---------------------------
(* One-line changes of HeadStart, each of which breaks a promise. *)
EXTENDS HeadStart

AtOnce(until) == now
NeverFree(isRelease) == FALSE
FreeEachTime(isRelease) == isRelease /\ Listens
NotLeft(isRelease) == FALSE
Remembered(time) == time
Anybody(p) == TRUE
NotAgain == FALSE
==============================================================================
