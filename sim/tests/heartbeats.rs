//! Goal: a lease that [`Policy::validate`](leaseproof_rules::Policy::validate) accepts survives one lost heartbeat reply,
//! also where a statement may take longer than the lease.
//! Method: the tightest lease that is accepted, two beats to what its owner uses of it, and one reply that never comes.

use leaseproof_sim::run::run_story;

const STORY: &str = r#"
version = 1
title = "One heartbeat reply is lost under a short lease"
question = "Does the worker lose a task that it is working on?"
requirements = ["A1"]
sources = []

[policy]
lease = "6s"
heartbeat = "2s"
fence_margin = "2s"

[queue]
deadline = "5s"

[[tasks]]
name = "t1"
work = "20s"

[[executors]]
name = "w1"

[[faults]]
at = "heartbeat.reply"
nth = NTH
on = "w1"
do = "lose"

[expect]
verdicts = ["auto-recovered"]
runs_max = 1
"#;

#[test]
fn one_lost_heartbeat_reply_does_not_end_a_lease() {
    for nth in 1..=3 {
        let text = STORY.replace("NTH", &nth.to_string());
        let story = leaseproof_scenarios::parse("heartbeats.toml", &text).unwrap();
        for seed in 0..10 {
            let run = run_story(&story, seed).unwrap();
            assert!(run.trace.contains("\"event\":\"lose\""), "{}", run.trace);
            assert_eq!(run.complaints(&story), [""; 0], "reply {nth}, seed {seed}:\n{}", run.trace);
        }
    }
}
