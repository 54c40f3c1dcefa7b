-------------------------------- MODULE Quorum --------------------------------
(***************************************************************************)
(* A lock of a quorum: whoever holds it on a majority of independent nodes *)
(* holds it.                                                               *)
(*                                                                         *)
(* lib/backends/quorum/quorum-attempt.ts: "First, the token counters of    *)
(* its other nodes are raised to this value, so that every later majority  *)
(* includes a node that knows the token. Without a majority, everything is *)
(* revoked, including what a slow node grants later."                      *)
(*                                                                         *)
(* lib/backends/quorum/quorum-backend.ts: "A node that lost its data may   *)
(* grant locks that are already held. Keep its data across restarts, or    *)
(* restart it only after the longest lease has ended."  This is the one    *)
(* exception: the first promises hold for as long as no node has forgotten *)
(* a lease or a token.                                                     *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS Nodes, Owners, Nobody, LeaseTime, Timeout, MaxTime, MaxForgotten

VARIABLES now,
          held,      \* of each node: an owner, and until when
          clock,     \* of each node: the last token
          phase,     \* of each owner id: "new", "asks", "agrees", "holds", "left"
          sent,      \* when it sent its last acquisition or renewal; when it left
          to,        \* of each owner: the nodes that may still execute that request
          grants,    \* of each owner: the nodes that have answered yes to it
          token,     \* of each owner
          belief,    \* until when it counts on the lock
          highest,   \* the highest token with which anybody has held it
          forgotten, \* how often a node lost its data
          wrong      \* a token was not higher than all before it

vars == <<now, held, clock, phase, sent, to, grants, token, belief, highest, forgotten, wrong>>

Init == /\ now = 0 /\ held = [n \in Nodes |-> [owner |-> Nobody, until |-> 0]] /\ clock = [n \in Nodes |-> 0]
        /\ phase = [o \in Owners |-> "new"] /\ sent = [o \in Owners |-> 0] /\ to = [o \in Owners |-> {}]
        /\ grants = [o \in Owners |-> {}] /\ token = [o \in Owners |-> 0] /\ belief = [o \in Owners |-> 0]
        /\ highest = 0 /\ forgotten = 0 /\ wrong = FALSE

Max(a, b) == IF a > b THEN a ELSE b
Free == [owner |-> Nobody, until |-> 0]
Holder(n) == IF held[n].until > now THEN held[n].owner ELSE Nobody
IsMajority(nodes) == 2 * Cardinality(nodes) > Cardinality(Nodes)
Renews(o) == phase[o] = "holds"

------------------------------------------------------------------------------
(* An attempt asks all nodes at once. *)

Asks(o, next) == /\ phase' = [phase EXCEPT ![o] = next] /\ sent' = [sent EXCEPT ![o] = now]
                 /\ to' = [to EXCEPT ![o] = Nodes] /\ grants' = [grants EXCEPT ![o] = {}]
                 /\ UNCHANGED <<now, held, clock, token, belief, highest, forgotten, wrong>>
Ask(o) == phase[o] = "new" /\ Asks(o, "asks")
Renew(o) == Renews(o) /\ belief[o] > now /\ sent[o] < now /\ Asks(o, "holds")

(* A node executes the request at some time before its deadline. Its answer comes, or is lost. *)
IsLateAt(o, time) == time > sent[o] + Timeout
MayGrant(n, o) == Holder(n) = o \/ (~Renews(o) /\ Holder(n) = Nobody)
(* A node that does not have the lock of a holder takes it again, after a majority has renewed it. *)
MayRestore(n, o) == Renews(o) /\ IsMajority(grants[o]) /\ Holder(n) = Nobody
Execute(n, o) ==
  /\ n \in to[o] /\ ~IsLateAt(o, now) /\ to' = [to EXCEPT ![o] = @ \ {n}]
  /\ IF MayGrant(n, o) \/ MayRestore(n, o)
     THEN /\ held' = [held EXCEPT ![n] = [owner |-> o, until |-> now + LeaseTime]]
          /\ clock' = [clock EXCEPT ![n] = IF Renews(o) THEN @ ELSE @ + 1]
          /\ \/ /\ phase[o] # "left" /\ grants' = [grants EXCEPT ![o] = @ \cup {n}]
                /\ token' = IF phase[o] = "asks" THEN [token EXCEPT ![o] = Max(@, clock[n] + 1)] ELSE token
             \/ phase[o] # "holds" /\ UNCHANGED <<grants, token>>
     ELSE UNCHANGED <<held, clock, grants, token>>
  /\ UNCHANGED <<now, phase, sent, belief, highest, forgotten, wrong>>

(* With a majority, the nodes that granted it agree on its token; each of them has to answer, or the attempt fails. *)
Enough(o) == IsMajority(grants[o])
Raised(n, o) == Max(clock[n], token[o])
Agree(o) == \E nodes \in SUBSET grants[o] :
  /\ phase[o] = "asks" /\ Enough(o) /\ IsMajority(nodes)
  /\ phase' = [phase EXCEPT ![o] = "agrees"] /\ clock' = [n \in Nodes |-> IF n \in nodes THEN Raised(n, o) ELSE clock[n]]
  /\ UNCHANGED <<now, held, sent, to, grants, token, belief, highest, forgotten, wrong>>

CountsFrom(o) == sent[o]
Begin(o) == /\ phase[o] = "agrees" /\ CountsFrom(o) + LeaseTime > now
            /\ phase' = [phase EXCEPT ![o] = "holds"] /\ belief' = [belief EXCEPT ![o] = CountsFrom(o) + LeaseTime]
            /\ highest' = Max(highest, token[o]) /\ wrong' = (wrong \/ token[o] <= highest)
            /\ UNCHANGED <<now, held, clock, sent, to, grants, token, forgotten>>
Confirm(o) == /\ Renews(o) /\ Enough(o) /\ belief[o] < CountsFrom(o) + LeaseTime
              /\ belief' = [belief EXCEPT ![o] = CountsFrom(o) + LeaseTime]
              /\ UNCHANGED <<now, held, clock, phase, sent, to, grants, token, highest, forgotten, wrong>>

(* It releases the lock, or has no majority, or dies. Requests that are on their way may still be executed. *)
Go(o) == /\ phase[o] \in {"asks", "agrees", "holds"} /\ phase' = [phase EXCEPT ![o] = "left"]
         /\ belief' = [belief EXCEPT ![o] = 0] /\ grants' = [grants EXCEPT ![o] = {}]
         /\ token' = [token EXCEPT ![o] = 0] /\ UNCHANGED <<now, held, clock, sent, to, highest, forgotten, wrong>>
MayRelease(o) == phase[o] = "left"
Release(n, o) == /\ MayRelease(o) /\ Holder(n) = o /\ held' = [held EXCEPT ![n] = Free]
                 /\ UNCHANGED <<now, clock, phase, sent, to, grants, token, belief, highest, forgotten, wrong>>

------------------------------------------------------------------------------
(* A node that stops, and starts with its data, is one that executes nothing meanwhile.  This one starts without. *)

Forget(n) == /\ forgotten < MaxForgotten /\ forgotten' = forgotten + 1
             /\ held' = [held EXCEPT ![n] = Free] /\ clock' = [clock EXCEPT ![n] = 0]
             /\ UNCHANGED <<now, phase, sent, to, grants, token, belief, highest, wrong>>

Ended(lock) == IF lock.until > now + 1 THEN lock ELSE Free
Tick == /\ now < MaxTime /\ now' = now + 1 /\ held' = [n \in Nodes |-> Ended(held[n])]
        /\ belief' = [o \in Owners |-> IF belief[o] > now + 1 THEN belief[o] ELSE 0]
        /\ to' = [o \in Owners |-> IF IsLateAt(o, now + 1) THEN {} ELSE to[o]]
        /\ UNCHANGED <<clock, phase, sent, grants, token, highest, forgotten, wrong>>

Next == Tick \/ (\E o \in Owners : Ask(o) \/ Renew(o) \/ Agree(o) \/ Begin(o) \/ Confirm(o) \/ Go(o))
             \/ \E n \in Nodes : Forget(n) \/ \E o \in Owners : Execute(n, o) \/ Release(n, o)
Spec == Init /\ [][Next]_vars
Symmetric == Permutations(Nodes) \cup Permutations(Owners)

------------------------------------------------------------------------------
(* Promises *)

Believes(o) == belief[o] > now
IsExcepted == forgotten > 0
(* What comes after the exception is not looked at. *)
Remembers == forgotten = 0
OneBelieves == ~IsExcepted => \A o, p \in Owners : Believes(o) /\ Believes(p) => o = p
BeliefIsCovered == ~IsExcepted => \A o \in Owners : Believes(o) => IsMajority({n \in Nodes : Holder(n) = o})
TokensGrow == ~IsExcepted => ~wrong
(* What an attempt left on a node ends, even if the node was down and nobody released it. *)
NothingIsLeft == \A n \in Nodes, o \in Owners : Holder(n) = o => held[n].until <= sent[o] + Timeout + LeaseTime
==============================================================================
