//! Goal: the journal does not say NOT_DONE of what the third party has done.
//! Method: the reply to a first call is lost; when the run after it calls, the third party is down and the connection is
//! refused, which proves of the second call that it was not made, and nothing of the first.

use leaseproof_sim::run::run_story;

const STORY: &str = r#"
version = 1
title = "The reply is lost, then the third party is away"
question = "Does the journal still say that the call may have been done?"
requirements = ["E-B", "E1"]
sources = []

[policy]
lease = "30s"
heartbeat = "10s"

[[tasks]]
name = "t1"
work = "24s"

[[tasks.effects]]
key = "charge"
after = "12s"
instruments = ["idempotency_key"]

[[executors]]
name = "w1"

[[faults]]
at = "call.reply"
on = "w1"
do = "lose"

[[faults]]
after = "20s"
on = "third_party"
do = "crash"
for = "20s"

[expect]
verdicts = ["auto-recovered"]
effects_min = 1
effects_max = 1
runs_max = 3
"#;

#[test]
fn a_refused_connection_does_not_undo_an_earlier_call_of_which_nothing_was_heard() {
    let story = leaseproof_scenarios::parse("journal.toml", STORY).unwrap();
    for seed in 0..10 {
        let run = run_story(&story, seed).unwrap();
        assert_eq!(run.complaints(&story), [""; 0], "seed {seed}:\n{}", run.trace);
        let calls = run.trace.lines().filter(|line| line.contains("\"event\":\"intent\"")).count();
        assert_eq!(calls, 3, "seed {seed}: the call between was refused\n{}", run.trace);
    }
}
