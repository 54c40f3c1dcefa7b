----------------------------- MODULE TokensMutants ----------------------------
(* One-line changes of Tokens, each of which breaks a promise. *)
EXTENDS TokensModel

AtTime == time
FarAhead == time + 2 * FirstLead
OnlyTime(l, least) == time
OnlyCount(l, least) == l + 1
Unlimited(first, reserve, count) == reserve
NeverExcepted == FALSE
==============================================================================
