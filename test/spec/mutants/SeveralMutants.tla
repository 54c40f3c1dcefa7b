----------------------------- MODULE SeveralMutants ----------------------------
(* One-line changes of Several, each of which breaks a promise. *)
EXTENDS Several

TheAnswer(sent) == now + 1
OneId(s) == 1
AnyOf(names) == names
Keeps(s, n) == {[s EXCEPT !.phase = "waits", !.busy = n]}
Never(s) == FALSE
AtOnce(s) == WithNothing(s, "holds")
Answers(u) == TRUE
Whenever(m, time) == FALSE
Nothing(c, s) == {}
OnlyTheFirst(c, s) == {Undone(c, n, s.id[n], -1) : n \in NextOf(Got(s))}
==============================================================================
