------------------------------ MODULE TokensModel ------------------------------
(* Tokens, made finite: losses of the data, a replica that is promoted late, and a clock that is set back. *)
EXTENDS Tokens

CONSTANTS Clients, MaxTime, MostReserve, MaxMishaps, MaxSetBack

VARIABLES replica,   \* the clock key as the replica has it
          promoted,  \* when the replica became the master; 0: not yet
          drawn,     \* an acquisition has drawn from the clock at this time
          seen,      \* of each client: the highest token that it was given
          setBack,   \* TIME has been set back
          mishaps

vars == <<tokenVars, replica, promoted, drawn, seen, setBack, mishaps>>

Init == TokensInit /\ replica = 0 /\ promoted = 0 /\ drawn = FALSE /\ seen = [c \in Clients |-> 0] /\ setBack = FALSE /\ mishaps = 0

(* An acquisition takes a unit of time at least: a microsecond. *)
Tick == /\ time < MaxTime /\ time' = time + 1 /\ drawn' = FALSE
        /\ UNCHANGED <<last, highest, latest, replica, promoted, seen, setBack, mishaps>>

Acquire(c, l, reserve) ==
  /\ ~drawn /\ drawn' = TRUE
  /\ Grant(l, seen[c], reserve)
  /\ seen' = [seen EXCEPT ![c] = last']
  /\ UNCHANGED <<replica, promoted, setBack, mishaps>>

Replicate == replica' = last /\ UNCHANGED <<tokenVars, promoted, drawn, seen, setBack, mishaps>>

(* Two at once are not covered: until TIME has caught up with the clock after it was set back, no data is lost. *)
HasCaughtUp == IF drawn THEN last <= time + FirstLead ELSE last < time + FirstLead
Mishap == mishaps < MaxMishaps /\ mishaps' = mishaps + 1 /\ HasCaughtUp

LoseData == Mishap /\ LoseClock /\ replica' = 0 /\ UNCHANGED <<promoted, drawn, seen, setBack>>

Promote == /\ Mishap /\ promoted = 0 /\ promoted' = time
           /\ last' = replica /\ UNCHANGED <<time, highest, latest, replica, drawn, seen, setBack>>

SetBack == /\ Mishap /\ last > 0 /\ \E d \in 1..MaxSetBack : time > d /\ time' = time - d
           /\ setBack' = TRUE
           /\ UNCHANGED <<last, highest, latest, replica, promoted, drawn, seen>>

Next == Tick \/ Replicate \/ LoseData \/ Promote \/ SetBack
        \/ \E c \in Clients, l \in Locks : \E reserve \in 0..MostReserve : Acquire(c, l, reserve)

Spec == Init /\ [][Next]_vars

(* The one exception: 0.15 s after a replica was promoted. *)
IsExcepted == promoted > 0 /\ latest.at <= promoted + FirstLead

TokensGrow == latest.token > latest.before \/ IsExcepted

(* What the clock leads is what a loss of the data could repeat. One token more: a caller that raises a missing clock
   begins it, and takes the next one. *)
LeadIsBounded == ~setBack => last <= time + FirstLead + 1
==============================================================================
