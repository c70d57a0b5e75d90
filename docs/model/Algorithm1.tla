---------------------------- MODULE Algorithm1 ----------------------------
(* Algorithm 1 of the paper (section 3.2): members of one group share the  *)
(* partitions of one topic through an ownership registry.                  *)
(*   StopsFirst = FALSE, WholeN = TRUE   the figure as printed             *)
(*   StopsFirst = TRUE,  WholeN = FALSE  the sound edition                 *)
(* Left out: offsets, lost answers, sessions that expire while their owner *)
(* still runs.                                                             *)
EXTENDS Integers, FiniteSets

CONSTANTS C,           \* number of consumers
          P,           \* number of partitions
          Changes,     \* how often somebody may come or go
          StopsFirst,  \* delivery ends before the owner node goes
          WholeN       \* N = |P| / |C| rounded down; else the first ones take the remainder, as in 0.7

VARIABLES pc, dirty, seen, got, reading, owner, left
vars == <<pc, dirty, seen, got, reading, owner, left>>

Consumers  == 0 .. C - 1
Partitions == 0 .. P - 1
Nobody     == C
In         == {c \in Consumers : pc[c] # "out"}

Index(c, S) == Cardinality({d \in S : d < c})
Share(c, S) ==
  LET j == Index(c, S)
      n == Cardinality(S)
      First(i) == i * (P \div n) + (IF WholeN THEN 0 ELSE IF i < P % n THEN i ELSE P % n)
  IN  {p \in Partitions : First(j) <= p /\ p < First(j + 1)}

Init == /\ pc = [c \in Consumers |-> "out"]
        /\ dirty = [c \in Consumers |-> FALSE]
        /\ seen = [c \in Consumers |-> {}]
        /\ got = [c \in Consumers |-> {}]
        /\ reading = [c \in Consumers |-> {}]
        /\ owner = [p \in Partitions |-> Nobody]
        /\ left = Changes

Join(c) == /\ pc[c] = "out" /\ left > 0
           /\ pc' = [pc EXCEPT ![c] = "rest"]
           /\ dirty' = [d \in Consumers |-> pc[d] # "out" \/ d = c]
           /\ left' = left - 1
           /\ UNCHANGED <<seen, got, reading, owner>>

(* A crash as the registry sees it: the nodes of the session go together. *)
Gone(c) == /\ pc[c] # "out" /\ left > 0
           /\ pc' = [pc EXCEPT ![c] = "out"]
           /\ dirty' = [d \in Consumers |-> pc[d] # "out" /\ d # c]
           /\ seen' = [seen EXCEPT ![c] = {}]
           /\ got' = [got EXCEPT ![c] = {}]
           /\ reading' = [reading EXCEPT ![c] = {}]
           /\ owner' = [p \in Partitions |-> IF owner[p] = c THEN Nobody ELSE owner[p]]
           /\ left' = left - 1

Begin(c) == /\ pc[c] = "rest" /\ dirty[c]
            /\ pc' = [pc EXCEPT ![c] = "begun"]
            /\ dirty' = [dirty EXCEPT ![c] = FALSE]
            /\ reading' = IF StopsFirst THEN [reading EXCEPT ![c] = {}] ELSE reading
            /\ UNCHANGED <<seen, got, owner, left>>

Release(c) == /\ pc[c] = "begun"                                   \* line 2
              /\ pc' = [pc EXCEPT ![c] = "released"]
              /\ owner' = [p \in Partitions |-> IF owner[p] = c THEN Nobody ELSE owner[p]]
              /\ got' = [got EXCEPT ![c] = {}]
              /\ UNCHANGED <<dirty, seen, reading, left>>

Read(c) == /\ pc[c] = "released"                                   \* line 3
           /\ pc' = [pc EXCEPT ![c] = "claiming"]
           /\ seen' = [seen EXCEPT ![c] = In]
           /\ dirty' = [dirty EXCEPT ![c] = FALSE]                 \* the watch is set by this very read
           /\ UNCHANGED <<got, reading, owner, left>>

Next1(c) == CHOOSE p \in Share(c, seen[c]) \ got[c] : \A q \in Share(c, seen[c]) \ got[c] : p <= q

Claim(c) == /\ pc[c] = "claiming"                                  \* lines 9, 10
            /\ Share(c, seen[c]) \ got[c] # {}
            /\ IF owner[Next1(c)] = Nobody
               THEN /\ owner' = [owner EXCEPT ![Next1(c)] = c]
                    /\ got' = [got EXCEPT ![c] = @ \cup {Next1(c)}]
                    /\ UNCHANGED <<pc, seen>>
               ELSE /\ pc' = [pc EXCEPT ![c] = "begun"]            \* release, wait a bit, retry
                    /\ seen' = [seen EXCEPT ![c] = {}]
                    /\ UNCHANGED <<owner, got>>
            /\ UNCHANGED <<dirty, reading, left>>

Start(c) == /\ pc[c] = "claiming"                                  \* line 12
            /\ Share(c, seen[c]) \ got[c] = {}
            /\ pc' = [pc EXCEPT ![c] = "rest"]
            /\ reading' = [reading EXCEPT ![c] = Share(c, seen[c])]
            /\ seen' = [seen EXCEPT ![c] = {}]
            /\ got' = [got EXCEPT ![c] = {}]
            /\ UNCHANGED <<dirty, owner, left>>

Step(c) == Begin(c) \/ Release(c) \/ Read(c) \/ Claim(c) \/ Start(c)
Next == \E c \in Consumers : Join(c) \/ Gone(c) \/ Step(c)
Spec == Init /\ [][Next]_vars /\ \A c \in Consumers : WF_vars(Step(c))

OneReader == \A c, d \in Consumers : c # d => reading[c] \cap reading[d] = {}
AtRest == \A c \in Consumers : pc[c] = "out" \/ (pc[c] = "rest" /\ ~dirty[c])
Complete == (AtRest /\ In # {}) => UNION {reading[c] : c \in Consumers} = Partitions
=============================================================================
