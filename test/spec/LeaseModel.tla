------------------------------ MODULE LeaseModel ------------------------------
(* Lease, made finite: how long it runs, and how often what goes wrong. *)
EXTENDS Lease

CONSTANTS c1, c2, Timeout, LeaseTime, Margin, MaxTime, MaxInFlight, Attempts, Mishaps

VARIABLE used  \* what has happened, of what happens once at most

TwoClients == {c1, c2}
OwnersOfClients == TwoClients \X (1..Attempts)
FirstOf(o) == o[1]
SameTimeout(o) == Timeout
LessMargin(lease) == lease - Margin

Kinds == {"resend", "lose", "force", "crash", "renew", "slip", "error"}

ModelInit == Init /\ used = {}

Spend(kind) == kind \notin used /\ Cardinality(used) < Mishaps /\ used' = used \cup {kind}
Free == UNCHANGED used

Tick == /\ now < MaxTime /\ now' = now + 1
        /\ UNCHANGED <<lock, requests, answers, own>>

Pass == Tick /\ clock' = [c \in Clients |-> clock[c] + 1] /\ Free
(* A client's clock may be slower than the server's, by as much as the margin allows for. *)
Slip == Tick /\ Spend("slip") /\ \E slow \in Clients : clock' = [c \in Clients |-> IF c = slow THEN clock[c] ELSE clock[c] + 1]

MayAsk(o) == Cardinality(requests) < MaxInFlight /\ (o[2] > 1 => own[<<o[1], o[2] - 1>>].phase # "new")
Exact == now + Timeout
IsOnItsWay(kind, o) == \E m \in requests \cup {a.request : a \in answers} : m.kind = kind /\ m.owner = o

ModelNext ==
  \/ Pass \/ Slip
  \/ \E o \in Owners : MayAsk(o) /\ Acquire(o, LeaseTime, Exact) /\ Free
  \/ \E o \in Owners : MayAsk(o) /\ Acquire(o, LeaseTime, Exact + Error) /\ Spend("error")
  \/ \E from, o \in Owners : MayAsk(o) /\ Transfer(from, o, LeaseTime, Exact) /\ Free
  \/ \E o \in Owners : ~IsOnItsWay("renew", o) /\ Renew(o, LeaseTime) /\ Spend("renew")
  \/ \E o \in Owners : Release(o) /\ Free
  \/ \E o \in Owners : Lapse(o) /\ Free
  \/ \E o \in Owners : GiveUp(o) /\ Free
  \/ \E o \in Owners : ~IsOnItsWay("release", o) /\ SendRelease(o) /\ Free
  \/ \E c \in Clients : Crash(c) /\ Spend("crash")
  \/ \E m \in requests : Execute(m) /\ Free
  \/ \E m \in requests : Refused(m) /\ Spend("lose")
  \/ \E m \in requests \cup {a.request : a \in answers} : Resend(m) /\ Spend("resend")
  \/ \E m \in requests : Lose(m) /\ Spend("lose")
  \/ \E a \in answers : LoseAnswer(a) /\ Spend("lose")
  \/ \E a \in answers : Read(a) /\ Free
  \/ ForceRelease /\ Spend("force")

ModelSpec == ModelInit /\ [][ModelNext]_<<vars, used>>
==============================================================================
