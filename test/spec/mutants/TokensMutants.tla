----------------------------- MODULE TokensMutants ----------------------------
(* One-line changes of Tokens, each of which breaks a promise. *)
EXTENDS TokensModel

AtTime == time
FarAhead == time + 2 * FirstLead
OnlyTime(l) == time
OnlyCount(l) == l + 1
Unlimited(token, reserve) == reserve
NeverExcepted == FALSE
==============================================================================
