---------------------------- MODULE DeadlockMutants ----------------------------
(* One-line changes of Deadlock, each of which breaks a promise. *)
EXTENDS Deadlock

AtOnce(c) == TRUE
Unread(c) == TRUE
AnyMember(c, members) == TRUE
NotTheFirst(c, members) == began[c] > 1
NoNumber == 1
Never(c) == FALSE
==============================================================================
