------------------------------ MODULE LeaseModel ------------------------------
(* Lease, made finite: how long it runs, and how often what goes wrong. *)
EXTENDS Lease, TLC

CONSTANTS c1, c2, AttemptsOfFirst, Timeout, LeaseTime, Margin, MaxTime, MaxInFlight, Mishaps, MaxSteps

VARIABLE used  \* what has happened, of what happens once at most

TwoClients == {c1, c2}
OwnersOfClients == {<<c1, n>> : n \in 1..AttemptsOfFirst} \cup {<<c2, 1>>}
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

DoAcquire(o) == /\ MayAsk(o)
                /\ \/ Acquire(o, LeaseTime, Exact) /\ Free
                   \/ Acquire(o, LeaseTime, Exact + Error) /\ Spend("error")
DoTransfer(from, o) == MayAsk(o) /\ Transfer(from, o, LeaseTime, Exact) /\ Free
DoRenew(o) == ~IsOnItsWay("renew", o) /\ Renew(o, LeaseTime) /\ Spend("renew")
DoRelease(o) == Release(o) /\ Free
DoLapse(o) == Lapse(o) /\ Free
DoGiveUp(o) == GiveUp(o) /\ Free
DoSendRelease(o) == ~IsOnItsWay("release", o) /\ SendRelease(o) /\ Free
DoCrash(c) == Crash(c) /\ Spend("crash")
DoExecute(m) == Execute(m) /\ Free
DoRefuse(m) == Refused(m) /\ Spend("lose")
DoResend(m) == Cardinality(requests) < MaxInFlight /\ Resend(m) /\ Spend("resend")
DoLose(m) == Lose(m) /\ Spend("lose")
DoLoseAnswer(a) == LoseAnswer(a) /\ Spend("lose")
DoRead(a) == Read(a) /\ Free
DoForceRelease == ForceRelease /\ Spend("force")

ModelNext ==
  \/ Pass \/ Slip \/ DoForceRelease
  \/ \E c \in Clients : DoCrash(c)
  \/ \E o \in Owners : DoAcquire(o) \/ DoRenew(o) \/ DoRelease(o) \/ DoLapse(o) \/ DoGiveUp(o) \/ DoSendRelease(o)
  \/ \E from, o \in Owners : DoTransfer(from, o)
  (* One a line: TLC counts these by their place alone. *)
  \/ \E m \in requests : DoExecute(m)
  \/ \E m \in requests : DoRefuse(m)
  \/ \E m \in requests : DoLose(m)
  \/ \E m \in requests \cup {a.request : a \in answers} : DoResend(m)
  \/ \E a \in answers : DoLoseAnswer(a)
  \/ \E a \in answers : DoRead(a)

(* All behaviours of this length. *)
IsShort == TLCGet("level") < MaxSteps

ModelSpec == ModelInit /\ [][ModelNext]_<<vars, used>>
==============================================================================
