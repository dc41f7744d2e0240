/* The lease design for one task and two executors, written a second time, by hand, in another language and for another
 * checker: SPIN must find as many states as leaseproof-model does on
 *
 *     World::lease(1, 2).errors().reruns(1)
 *
 * One d_step is one action of the Rust model (src/free.rs), the variables are its state; what is constant in this world
 * (no outside effect, no overrun) is left out. Steps that change nothing are left out too.
 */

#ifndef MAX_ATTEMPTS
#define MAX_ATTEMPTS 2
#endif
#ifndef MAX_INTERRUPTIONS
#define MAX_INTERRUPTIONS 1
#endif
#ifndef MAX_RERUNS
#define MAX_RERUNS 1
#endif

/* status */
#define PENDING     0
#define RUNNING     1
#define RETRY_WAIT  2
#define SUCCESS     3
#define FAIL        4
#define WAIT_MANUAL 5

/* phase of an executor */
#define IDLE       0
#define CLAIMING   1
#define WORKING    2
#define COMPLETING 3
#define FAILING    4

/* reason */
#define NONE                    0
#define ATTEMPTS_EXHAUSTED      1
#define INTERRUPTIONS_EXHAUSTED 2

byte status, epoch, attempts, interruptions, reason;
byte decided;                /* ghost: the epoch at a person's last decision */
bool expired;
byte phase[2], claim[2];     /* claim: the epoch an executor has read or claimed */
bool seen;                   /* the sweeper remembers the task ... */
byte seen_epoch;             /* ... as of this epoch */
bool open;                   /* a person looks at it ... */
byte open_epoch;             /* ... as of this epoch */
byte reruns;
bool calm;                   /* ghost: no fault from now on */

#define CLAIMABLE   (status == PENDING || status == RETRY_WAIT)
#define OWNED_BY(e) (status == RUNNING && epoch == (e))

inline become(to, why) { status = to; reason = why; expired = false }

/* A compare-and-set on the epoch that was read. */
inline claim_write(won) {
    if
    :: CLAIMABLE && epoch == claim[_pid] -> become(RUNNING, NONE); epoch++; won = true
    :: else -> won = false
    fi
}

/* A success already recorded, an adopted late success, or the fenced success of the owner. */
inline complete_write() {
    if
    :: status == SUCCESS && epoch == claim[_pid] -> skip
    :: CLAIMABLE && epoch == claim[_pid] + 1 -> become(SUCCESS, NONE)
    :: OWNED_BY(claim[_pid]) -> become(SUCCESS, NONE)
    :: else -> skip
    fi
}

inline failure_write() {
    if
    :: !OWNED_BY(claim[_pid]) -> skip
    :: OWNED_BY(claim[_pid]) && attempts + 1 >= MAX_ATTEMPTS ->
        attempts++; epoch++; become(WAIT_MANUAL, ATTEMPTS_EXHAUSTED)
    :: else -> attempts++; epoch++; become(RETRY_WAIT, NONE)
    fi
}

inline rest() { phase[_pid] = IDLE; claim[_pid] = 0 }

bool won;  /* scratch inside one d_step, always false between steps */

active [2] proctype executor() {
    do
    :: d_step { phase[_pid] == IDLE && CLAIMABLE -> phase[_pid] = CLAIMING; claim[_pid] = epoch }
    /* the claim: fine, request lost, reply lost */
    :: d_step { phase[_pid] == CLAIMING -> claim_write(won);
                if :: won -> phase[_pid] = WORKING; claim[_pid] = epoch :: else -> rest() fi; won = false }
    :: d_step { phase[_pid] == CLAIMING && !calm -> rest() }
    :: d_step { phase[_pid] == CLAIMING && !calm -> claim_write(won); won = false; rest() }
    /* the work */
    :: d_step { phase[_pid] == WORKING -> phase[_pid] = COMPLETING }
    :: d_step { phase[_pid] == WORKING -> phase[_pid] = FAILING }
    /* the report: fine, reply lost */
    :: d_step { phase[_pid] == COMPLETING -> complete_write(); rest() }
    :: d_step { phase[_pid] == COMPLETING && !calm -> complete_write() }
    :: d_step { phase[_pid] == FAILING -> failure_write(); rest() }
    :: d_step { phase[_pid] == FAILING && !calm -> failure_write() }
    /* a refused heartbeat cancels the run */
    :: d_step { (phase[_pid] == WORKING || phase[_pid] == FAILING) && !(OWNED_BY(claim[_pid]) && !expired) -> rest() }
    /* death, or stopping by its own clock */
    :: d_step { phase[_pid] != IDLE && !calm -> rest() }
    od
}

active proctype time() {
    do
    :: d_step { status == RUNNING && !expired -> expired = true }
    od
}

active proctype sweeper() {
    do
    :: d_step { !seen && status == RUNNING && expired -> seen = true; seen_epoch = epoch }
    :: d_step { seen ->
        if
        :: !(OWNED_BY(seen_epoch) && expired) -> skip
        :: OWNED_BY(seen_epoch) && expired && interruptions >= MAX_INTERRUPTIONS ->
            interruptions++; epoch++; become(WAIT_MANUAL, INTERRUPTIONS_EXHAUSTED)
        :: else -> interruptions++; epoch++; become(PENDING, NONE)
        fi;
        seen = false; seen_epoch = 0 }
    :: d_step { seen && !calm -> seen = false; seen_epoch = 0 }
    od
}

inline decide(to) { decided = epoch; epoch++; become(to, NONE); open = false; open_epoch = 0 }

active proctype person() {
    do
    :: d_step { !open && status == WAIT_MANUAL -> open = true; open_epoch = epoch }
    :: d_step { open && reruns < MAX_RERUNS -> assert(status == WAIT_MANUAL && epoch == open_epoch);
                reruns++; attempts = 0; interruptions = 0; decide(PENDING) }
    :: d_step { open -> assert(status == WAIT_MANUAL && epoch == open_epoch); decide(FAIL) }
    :: d_step { open -> assert(status == WAIT_MANUAL && epoch == open_epoch); decide(SUCCESS) }
    od
}

active proctype world() {
    do
    :: d_step { !calm -> calm = true }
    od
}

/* Every fair run resolves the task, again and again. SPIN's weak fairness is of processes, not of kinds of steps. */
ltl resolved { [] <> (status == SUCCESS || status == FAIL || status == WAIT_MANUAL) }
