-------------------------------- MODULE Tokens --------------------------------
(***************************************************************************)
(* The hybrid clock that fencing tokens come from.                         *)
(*                                                                         *)
(* docs/internals/decisions/token-clock.md: "token = max(last + 1, `TIME`  *)
(* in us, the highest token that this process has seen)"; "the clock runs  *)
(* ahead of `TIME`, by 0.1 s at most.  A clock key that is missing starts  *)
(* 0.15 s ahead."                                                          *)
(* docs/fencing-tokens.md: "If a replica becomes the master without        *)
(* knowing the latest acquisitions, it can hand out tokens that are lower  *)
(* than theirs, for up to 0.15 seconds."                                   *)
(*                                                                         *)
(* A unit of time stands for 50 ms in the model, for a microsecond in a    *)
(* trace.                                                                  *)
(***************************************************************************)
EXTENDS Integers

CONSTANTS Locks, FirstLead, MaxLead

VARIABLES time,      \* what the server's TIME shows
          last,      \* the clock key: the last token that was given or reserved; 0: the key is missing
          highest,   \* of each lock: the highest token that was given or reserved, by whichever server
          latest     \* the latest acquisition: its token, and what was the highest before it

tokenVars == <<time, last, highest, latest>>

Larger(a, b) == IF a > b THEN a ELSE b
Smaller(a, b) == IF a < b THEN a ELSE b

TokensInit == /\ time = 1 /\ last = 0 /\ highest = [l \in Locks |-> 0]
              /\ latest = [token |-> 1, before |-> 0, at |-> 0]

(* What a clock that does not exist begins with. *)
First == time + FirstLead

(* Greater than the last one, and than what the caller has seen: this server may have lost its data. *)
Upcoming(l, seen) == Larger(IF l = 0 THEN First ELSE Larger(l + 1, time), seen + 1)

(* Reserved tokens may set the clock ahead of TIME by this much, because a loss of the data could repeat them. *)
Reserved(first, reserve, count) == Larger(0, Smaller(reserve, (time + MaxLead + 1 - first) \div count - 1))

(* An acquisition of a lock, with tokens for so many hand-offs.  One script draws for as many acquisitions as it is asked *)
(* for, and this is the one after `n` others.                                                                            *)
GrantInBatch(l, seen, reserve, count, n) ==
  LET first == Upcoming(last, seen) more == Reserved(first, reserve, count) token == first + n * (1 + more) IN
  /\ last' = first + count * (1 + more) - 1
  /\ highest' = [highest EXCEPT ![l] = Larger(@, token + more)]
  /\ latest' = [token |-> token, before |-> highest[l], at |-> time]
  /\ UNCHANGED time
Grant(l, seen, reserve) == GrantInBatch(l, seen, reserve, 1, 0)

LoseClock == last' = 0 /\ UNCHANGED <<time, highest, latest>>
==============================================================================
