------------------------------- MODULE Lease -------------------------------
(* The lease design for one task and two executors, written once more, by hand, for TLC. It must find as many states as
   leaseproof-model does on

       World::lease(1, 2).errors().reruns(1)

   One disjunct is one action of the Rust model (src/free.rs), the variables are its state; what is constant in this world
   (no outside effect, no overrun) is left out. Read it beside ../spin/lease.pml, which says the same to SPIN. *)
EXTENDS Naturals

CONSTANTS MaxAttempts, MaxInterruptions, MaxReruns

VARIABLES
    status, epoch, attempts, interruptions, reason,
    decided,              \* ghost: the epoch at a person's last decision
    expired,
    phase, claim,         \* claim: the epoch an executor has read or claimed
    seen, seenEpoch,      \* the sweeper remembers the task, as of this epoch
    open, openEpoch,      \* a person looks at it, as of this epoch
    reruns,
    calm                  \* ghost: no fault from now on

row == <<status, epoch, attempts, interruptions, reason, expired>>
executors == <<phase, claim>>
sweeper == <<seen, seenEpoch>>
person == <<decided, open, openEpoch, reruns>>
vars == <<row, executors, sweeper, person, calm>>

Executors == {1, 2}
Claimable == status \in {"PENDING", "RETRY_WAIT"}
OwnedBy(e) == status = "RUNNING" /\ epoch = e
Lost(e) == OwnedBy(e) /\ expired

Init ==
    /\ status = "PENDING" /\ epoch = 0 /\ attempts = 0 /\ interruptions = 0 /\ reason = "none" /\ expired = FALSE
    /\ phase = [x \in Executors |-> "idle"] /\ claim = [x \in Executors |-> 0]
    /\ seen = FALSE /\ seenEpoch = 0
    /\ decided = 0 /\ open = FALSE /\ openEpoch = 0 /\ reruns = 0
    /\ calm = FALSE

Become(to, why) == status' = to /\ reason' = why /\ expired' = FALSE

(* ---- what a conditional write does to the row ---- *)

ClaimWrite(x) ==
    IF Claimable /\ epoch = claim[x]
    THEN Become("RUNNING", "none") /\ epoch' = epoch + 1 /\ UNCHANGED <<attempts, interruptions>>
    ELSE UNCHANGED row

\* An adopted late success, or the fenced success of the owner. A success already recorded changes nothing.
CompleteWrite(x) ==
    IF (Claimable /\ epoch = claim[x] + 1) \/ OwnedBy(claim[x])
    THEN Become("SUCCESS", "none") /\ UNCHANGED <<epoch, attempts, interruptions>>
    ELSE UNCHANGED row

FailureWrite(x) ==
    IF OwnedBy(claim[x])
    THEN /\ attempts' = attempts + 1 /\ epoch' = epoch + 1 /\ UNCHANGED interruptions
         /\ IF attempts + 1 >= MaxAttempts
            THEN Become("WAIT_MANUAL", "attempts_exhausted")
            ELSE Become("RETRY_WAIT", "none")
    ELSE UNCHANGED row

(* ---- executors ---- *)

Go(x, to) == phase' = [phase EXCEPT ![x] = to] /\ UNCHANGED claim
Rest(x) == phase' = [phase EXCEPT ![x] = "idle"] /\ claim' = [claim EXCEPT ![x] = 0]
Others == UNCHANGED <<sweeper, person, calm>>

Look(x) ==
    /\ phase[x] = "idle" /\ Claimable
    /\ phase' = [phase EXCEPT ![x] = "claiming"] /\ claim' = [claim EXCEPT ![x] = epoch]
    /\ UNCHANGED row /\ Others

Claim(x) ==
    /\ phase[x] = "claiming" /\ ClaimWrite(x) /\ Others
    /\ IF Claimable /\ epoch = claim[x]
       THEN phase' = [phase EXCEPT ![x] = "working"] /\ claim' = [claim EXCEPT ![x] = epoch + 1]
       ELSE Rest(x)

ClaimRequestLost(x) == phase[x] = "claiming" /\ ~calm /\ Rest(x) /\ UNCHANGED row /\ Others
ClaimReplyLost(x) == phase[x] = "claiming" /\ ~calm /\ ClaimWrite(x) /\ Rest(x) /\ Others

Work(x) == phase[x] = "working" /\ \E to \in {"completing", "failing"} : Go(x, to) /\ UNCHANGED row /\ Others

Report(x) ==
    /\ \/ phase[x] = "completing" /\ CompleteWrite(x)
       \/ phase[x] = "failing" /\ FailureWrite(x)
    /\ Rest(x) /\ Others

\* It says so again.
ReportReplyLost(x) ==
    /\ ~calm
    /\ \/ phase[x] = "completing" /\ CompleteWrite(x)
       \/ phase[x] = "failing" /\ FailureWrite(x)
    /\ UNCHANGED executors /\ Others

\* A refused heartbeat cancels the run.
Cancel(x) ==
    /\ phase[x] \in {"working", "failing"} /\ ~(OwnedBy(claim[x]) /\ ~expired)
    /\ Rest(x) /\ UNCHANGED row /\ Others

\* Death, or stopping by its own clock.
Die(x) == phase[x] # "idle" /\ ~calm /\ Rest(x) /\ UNCHANGED row /\ Others

(* ---- the others ---- *)

Expire ==
    /\ status = "RUNNING" /\ ~expired /\ expired' = TRUE
    /\ UNCHANGED <<status, epoch, attempts, interruptions, reason, executors, sweeper, person, calm>>

Sweep ==
    /\ ~seen /\ status = "RUNNING" /\ expired /\ seen' = TRUE /\ seenEpoch' = epoch
    /\ UNCHANGED <<row, executors, person, calm>>

SweepWrite ==
    /\ seen /\ seen' = FALSE /\ seenEpoch' = 0 /\ UNCHANGED <<executors, person, calm>>
    /\ IF Lost(seenEpoch)
       THEN /\ interruptions' = interruptions + 1 /\ epoch' = epoch + 1 /\ UNCHANGED attempts
            /\ IF interruptions >= MaxInterruptions
               THEN Become("WAIT_MANUAL", "interruptions_exhausted")
               ELSE Become("PENDING", "none")
       ELSE UNCHANGED row

SweeperDies ==
    /\ seen /\ ~calm /\ seen' = FALSE /\ seenEpoch' = 0
    /\ UNCHANGED <<row, executors, person, calm>>

Open ==
    /\ ~open /\ status = "WAIT_MANUAL" /\ open' = TRUE /\ openEpoch' = epoch
    /\ UNCHANGED <<row, executors, sweeper, decided, reruns, calm>>

Decide(to) ==
    /\ open /\ decided' = epoch /\ epoch' = epoch + 1 /\ Become(to, "none")
    /\ open' = FALSE /\ openEpoch' = 0 /\ UNCHANGED <<executors, sweeper, calm>>

Rerun ==
    /\ reruns < MaxReruns /\ reruns' = reruns + 1 /\ attempts' = 0 /\ interruptions' = 0
    /\ Decide("PENDING")

Settle == \E to \in {"SUCCESS", "FAIL"} : Decide(to) /\ UNCHANGED <<attempts, interruptions, reruns>>

Calm == ~calm /\ calm' = TRUE /\ UNCHANGED <<row, executors, sweeper, person>>

Next ==
    \/ \E x \in Executors :
        \/ Look(x) \/ Claim(x) \/ ClaimRequestLost(x) \/ ClaimReplyLost(x) \/ Work(x)
        \/ Report(x) \/ ReportReplyLost(x) \/ Cancel(x) \/ Die(x)
    \/ Expire \/ Sweep \/ SweepWrite \/ SweeperDies \/ Open \/ Rerun \/ Settle \/ Calm

(* ---- what is promised ---- *)

\* Nobody decides under a person who looks at the task.
ManualIsClosed == open => status = "WAIT_MANUAL" /\ epoch = openEpoch

\* Of all who believe to own the task, at most one holds the epoch of its row.
OneCurrentOwner == \A x, y \in Executors :
    phase[x] = "working" /\ phase[y] = "working" /\ OwnedBy(claim[x]) /\ OwnedBy(claim[y]) => x = y

AttemptsAreBounded == attempts <= MaxAttempts /\ interruptions <= MaxInterruptions + 1

\* Weak fairness of each kind of step that is not a fault.
Fairness ==
    /\ \A x \in Executors :
        WF_vars(Look(x)) /\ WF_vars(Claim(x)) /\ WF_vars(Work(x)) /\ WF_vars(Report(x)) /\ WF_vars(Cancel(x))
    /\ WF_vars(Expire) /\ WF_vars(Sweep) /\ WF_vars(SweepWrite) /\ WF_vars(Calm)

Safe == Init /\ [][Next]_vars
Spec == Safe /\ Fairness
Resolved == []<>(status \in {"SUCCESS", "FAIL", "WAIT_MANUAL"})
=============================================================================
