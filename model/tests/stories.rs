//! Stories on the model: those that ship, and what the clock, the faults and the points do.

use leaseproof_model::story::{StoryModelError, StoryOutcome, run_story, run_story_under};
use leaseproof_rules::{Guards, Property, Reason};
use leaseproof_scenarios::{Story, Verdict, ablations, parse, stories};

/// A story from its parts; `rest` holds tasks, executors, faults and the like.
fn story(policy: &str, rest: &str) -> Story {
    let text = format!(
        "version = 1\ntitle = \"t\"\nquestion = \"q\"\n[policy]\nlease = \"30s\"\nheartbeat = \"10s\"\n{policy}\n{rest}\n\
         [expect]\nverdicts = [\"auto-recovered\"]\n"
    );
    parse("story.toml", &text).unwrap()
}

const WORK: &str = "[[tasks]]\nname = \"t1\"\nwork = \"20s\"\n";
const TWO: &str = "[[executors]]\nname = \"w1\"\n[[executors]]\nname = \"w2\"\nstart = \"8s\"\n";
const ONE: &str = "[[executors]]\nname = \"w1\"\n";

fn play(policy: &str, parts: &[&str]) -> StoryOutcome {
    let outcome = run_story(&story(policy, &parts.concat())).unwrap();
    assert!(!outcome.cut);
    outcome
}

fn verdicts(outcome: &StoryOutcome) -> Vec<Verdict> {
    outcome.verdicts.keys().copied().collect()
}

#[test]
fn every_shipped_story_ends_as_it_says() {
    let all = stories().unwrap();
    assert!(all.len() >= 12);
    for story in all.into_iter().chain(ablations().unwrap()) {
        let outcome = run_story(&story).unwrap();
        assert_eq!(outcome.complaints(&story), [""; 0], "{}", story.name);
    }
}

#[test]
fn with_its_guard_back_no_ablation_story_goes_wrong() {
    for story in ablations().unwrap() {
        assert!(story.without.is_some(), "{}", story.name);
        let outcome = run_story_under(&story, Guards::ALL).unwrap();
        assert!(outcome.verdicts.keys().all(|verdict| verdict.broken().is_none()), "{}: {outcome:?}", story.name);
    }
}

#[test]
fn a_story_is_told_the_same_every_time_and_in_order_of_time() {
    for story in stories().unwrap() {
        let (once, again) = (run_story(&story).unwrap(), run_story(&story).unwrap());
        assert_eq!(StoryOutcome { seconds: 0.0, ..once.clone() }, StoryOutcome { seconds: 0.0, ..again });
        for trace in once.verdicts.values() {
            assert!(trace.events.is_sorted_by_key(|event| event.time_ms));
            for event in &trace.events {
                let known = ["sweeper", "database", "third_party", "person"].contains(&event.node.as_str())
                    || story.executors.iter().any(|executor| executor.name == event.node);
                assert!(known, "{}: {event}", story.name);
            }
        }
    }
}

/// Whatever single message is lost, whoever dies or stands still at whatever point, and whatever link is cut there: no
/// property breaks and the task is resolved.
#[test]
fn no_single_fault_at_any_point_breaks_a_property() {
    // It fails once, so retry is on the way; the second run is reclaimed by the sweeper's points of the third story.
    let with_call = "[[tasks]]\nname = \"t1\"\nwork = \"20s\"\nends = [\"error\", \"ok\"]\n[[tasks.effects]]\nkey = \"k\"\nafter = \"10s\"\n\
                     instruments = [\"status_query\", \"execution_token\"]\n";
    let bad = "[[tasks]]\nname = \"t1\"\nwork = \"20s\"\nends = [\"bad_input\"]\n";
    let lost_call = "[[faults]]\nat = \"call.reply\"\non = \"w1\"\ndo = \"lose\"\n";
    let crash = "[[faults]]\nafter = \"12s\"\non = \"w1\"\ndo = \"crash\"\n";
    let mut struck = 0;
    let mut try_all = |tasks: &str, extra: &str, policy: &str, node: &str, ops: &[&str]| {
        for op in ops {
            for half in ["request", "reply"] {
                // Of the third party only tasks that call it take notice.
                let all = [
                    "do = \"lose\"",
                    "do = \"crash\"\nfor = \"20s\"",
                    "do = \"pause\"\nfor = \"7s\"",
                    "do = \"pause\"\nfor = \"60s\"",
                    "do = \"cut\"\npeer = \"database\"\nfor = \"45s\"",
                    "do = \"cut\"\npeer = \"third_party\"\nway = \"from\"\nfor = \"45s\"",
                ];
                let calls = tasks.contains("effects");
                for act in all.into_iter().filter(|act| calls || !act.contains("third_party")) {
                    let fault = format!("[[faults]]\nat = \"{op}.{half}\"\non = \"{node}\"\n{act}\n");
                    let outcome = play(policy, &[tasks, TWO, extra, &fault]);
                    let broken: Vec<_> = outcome.verdicts.keys().filter(|verdict| verdict.broken().is_some()).collect();
                    assert!(broken.is_empty(), "{fault}: {broken:?}\n{}", outcome.verdicts[broken[0]]);
                    assert!(outcome.recovered_within_ms.is_some(), "{fault}");
                    assert!(outcome.effects_max <= 1, "{fault}");
                    let notes = |text: &str| {
                        outcome.verdicts.values().any(|trace| trace.events.iter().any(|e| e.what.contains(text)))
                    };
                    struck += usize::from(
                        notes("lost") || notes("CRASH") || notes("stands still") || notes("cut off") || notes("held"),
                    );
                }
            }
        }
    };
    let ops = ["claim", "heartbeat", "intent", "call", "outcome", "retry"];
    try_all(with_call, "", "", "w1", &ops);
    try_all(WORK, "", "", "w1", &["complete"]);
    try_all(with_call, lost_call, "", "w1", &["query"]);
    try_all(bad, "", "", "w1", &["give_up"]);
    try_all(WORK, crash, "", "sweeper", &["sweep", "requeue"]);
    try_all(WORK, crash, "max_interruptions = 0", "sweeper", &["escalate"]);
    // Each of them strikes: the story comes to its point.
    assert_eq!(struck, 7 * 2 * 6 + 5 * 2 * 5);
}

#[test]
fn the_sweeper_asks_before_it_gives_up_and_again_when_nobody_answers() {
    let call = "[[tasks]]\nname = \"t1\"\nwork = \"20s\"\n[[tasks.effects]]\nkey = \"k\"\nafter = \"10s\"\n\
                instruments = [\"status_query\"]\n";
    let crash = "[[faults]]\nat = \"call.reply\"\non = \"w1\"\ndo = \"crash\"\n";
    let asked = play("", &[call, TWO, crash]);
    assert_eq!(verdicts(&asked), [Verdict::AutoRecovered]);
    assert_eq!((asked.effects_min, asked.effects_max), (1, 1));
    // The third party is away when the sweeper asks, at 40 s, and is back at 60 s.
    let away = "[[faults]]\nafter = \"30s\"\non = \"third_party\"\ndo = \"crash\"\nfor = \"30s\"\n";
    let later = play("", &[call, TWO, crash, away]);
    assert_eq!(verdicts(&later), [Verdict::AutoRecovered]);
    assert!(later.recovered_within_ms > asked.recovered_within_ms);
}

/// Without any instrument: what is known never to have left needs none.
#[test]
fn a_call_that_was_never_sent_is_made_by_the_next_run() {
    let call = "[[tasks]]\nname = \"t1\"\nwork = \"20s\"\n[[tasks.effects]]\nkey = \"k\"\nafter = \"10s\"\n";
    let away = |act: &str| format!("[[faults]]\nafter = \"5s\"\n{act}\nfor = \"8s\"\n");
    let told = |outcome: &StoryOutcome, what: &str| {
        outcome.verdicts[&Verdict::AutoRecovered].events.iter().filter(|event| event.what == what).count()
    };
    // The call comes at 10 s. Refused at once, it is made again a second later, and ten more of work, and again: until 13 s.
    let down = play("", &[call, ONE, &away("on = \"third_party\"\ndo = \"crash\"")]);
    assert_eq!(verdicts(&down), [Verdict::AutoRecovered]);
    assert_eq!((down.effects_min, down.effects_max, down.runs_max), (1, 1, 2));
    assert_eq!((told(&down, "the connection is refused"), told(&down, "outcome → RUNNING")), (1, 2));
    // In a cut there is no word at all. TCP asks again after one second and after three; the cut is over by then.
    let cut = play("", &[call, ONE, &away("on = \"w1\"\ndo = \"cut\"\npeer = \"third_party\"")]);
    assert_eq!((verdicts(&cut), cut.runs_max), (vec![Verdict::AutoRecovered], 1));
    let longer = "[[faults]]\nafter = \"5s\"\non = \"w1\"\ndo = \"cut\"\npeer = \"third_party\"\nfor = \"12s\"\n";
    let longer = play("", &[call, ONE, longer]);
    assert_eq!((verdicts(&longer), longer.runs_max), (vec![Verdict::AutoRecovered], 2));
    assert_eq!(told(&longer, "no connection in time: nothing was sent"), 1);
}

#[test]
fn a_fault_that_finds_its_process_dead_does_not_strike() {
    let dies = "[[faults]]\nafter = \"5s\"\non = \"w1\"\ndo = \"crash\"\n";
    for act in ["do = \"crash\"", "do = \"pause\"\nfor = \"9s\""] {
        let late = format!("[[faults]]\nafter = \"9s\"\non = \"w1\"\n{act}\n");
        let text = [WORK, TWO, dies, &late].concat();
        let outcome = run_story(&story("", &text)).unwrap();
        assert_eq!(outcome.struck.iter().copied().collect::<Vec<_>>(), [0], "{act}");
        let complaints = outcome.complaints(&story("", &text));
        assert!(complaints.iter().any(|why| why.contains("faults[1], on w1, never strikes")), "{act}: {complaints:?}");
    }
}

#[test]
fn a_call_may_or_may_not_be_made_twice_as_the_policy_says() {
    let call = |unknown: &str| {
        format!(
            "[[tasks]]\nname = \"t1\"\nwork = \"20s\"\n[[tasks.effects]]\nkey = \"k\"\nafter = \"10s\"\n\
             on_unknown = \"{unknown}\"\n"
        )
    };
    // Before the call leaves, or after it is done: the journal looks the same.
    let crash = |half: &str| format!("[[faults]]\nat = \"call.{half}\"\non = \"w1\"\ndo = \"crash\"\n");
    let effects = |unknown: &str, half: &str| {
        let outcome = play("", &[&call(unknown), TWO, &crash(half)]);
        (verdicts(&outcome), outcome.effects_min, outcome.effects_max)
    };
    assert_eq!(effects("repeat", "reply"), (vec![Verdict::AutoRecovered], 2, 2));
    assert_eq!(effects("repeat", "request"), (vec![Verdict::AutoRecovered], 1, 1));
    assert_eq!(effects("skip", "reply"), (vec![Verdict::AutoRecovered], 1, 1));
    assert_eq!(effects("skip", "request"), (vec![Verdict::AutoRecovered], 0, 0));
    let unknown = vec![Verdict::Escalated(Reason::OutcomeUnknown)];
    assert_eq!(effects("escalate", "reply"), (unknown.clone(), 1, 1));
    assert_eq!(effects("escalate", "request"), (unknown, 0, 0));
}

#[test]
fn a_person_knows_the_truth_and_the_rerun_does_not_call_again() {
    let call = "[[tasks]]\nname = \"t1\"\nwork = \"20s\"\n[[tasks.effects]]\nkey = \"k\"\nafter = \"10s\"\n";
    let rerun = "[[decisions]]\ntask = \"t1\"\ndo = \"rerun\"\nafter = \"10s\"\n";
    for half in ["request", "reply"] {
        let crash = format!("[[faults]]\nat = \"call.{half}\"\non = \"w1\"\ndo = \"crash\"\n");
        let outcome = play("", &[call, TWO, &crash, rerun]);
        assert_eq!(verdicts(&outcome), [Verdict::Escalated(Reason::OutcomeUnknown)]);
        assert_eq!((outcome.effects_min, outcome.effects_max, outcome.runs_max), (1, 1, 2), "{half}");
    }
}

#[test]
fn a_person_marks_and_a_zombie_can_not_change_it() {
    let pause = "[[faults]]\nat = \"complete.request\"\non = \"w1\"\ndo = \"pause\"\nfor = \"90s\"\n";
    for act in ["fail", "succeed", "rerun"] {
        let decision = format!("[[decisions]]\ntask = \"t1\"\ndo = \"{act}\"\nafter = \"10s\"\n");
        let outcome = play("max_interruptions = 0", &[WORK, ONE, pause, &decision]);
        assert_eq!(verdicts(&outcome), [Verdict::Escalated(Reason::InterruptionsExhausted)], "{act}");
        assert!(outcome.late_results_min >= 1, "{act}");
    }
}

#[test]
fn a_late_success_is_adopted_if_nobody_has_claimed_since() {
    // One worker, still when its lease ends; nobody else is there to claim.
    let pause = "[[faults]]\nat = \"complete.request\"\non = \"w1\"\ndo = \"pause\"\nfor = \"60s\"\n";
    let outcome = play("", &[WORK, ONE, pause]);
    assert_eq!(verdicts(&outcome), [Verdict::AutoRecovered]);
    assert_eq!(outcome.runs_max, 1);
    assert!(outcome.verdicts[&Verdict::AutoRecovered].events.iter().any(|event| event.what.contains("adopted")));
}

#[test]
fn without_anybody_to_run_it_a_task_is_stuck() {
    let crash = "[queue]\nhorizon = \"3m\"\n[[faults]]\nafter = \"5s\"\non = \"w1\"\ndo = \"crash\"\n";
    let outcome = play("", &[crash, WORK, ONE]);
    assert_eq!(verdicts(&outcome), [Verdict::Stuck]);
    assert_eq!(outcome.recovered_within_ms, None);
    let restart = "[[faults]]\nafter = \"5s\"\non = \"w1\"\ndo = \"crash\"\nfor = \"10s\"\n";
    let outcome = play("", &[WORK, ONE, restart]);
    assert_eq!(verdicts(&outcome), [Verdict::AutoRecovered]);
    // The lease, made at 0 s, ends at 30 s; then a sweep, a poll and the work: at 20 + 30 s at best, 20 + 36 s at worst.
    assert!((45_000..=51_000).contains(&outcome.recovered_within_ms.unwrap()), "{outcome:?}");
}

#[test]
fn a_database_that_stands_still_executes_what_it_was_sent_when_it_goes_on() {
    // Both workers' claims wait for 20 s, longer than the deadline: forgotten by their senders, but not undone.
    let pause = "[[faults]]\nafter = \"0s\"\non = \"database\"\ndo = \"pause\"\nfor = \"20s\"\n";
    let outcome = play("", &[WORK, TWO, pause]);
    assert_eq!(verdicts(&outcome), [Verdict::AutoRecovered]);
    assert_eq!(outcome.runs_max, 2);
}

#[test]
fn a_worker_that_can_not_renew_stops_before_its_lease_ends() {
    let cut = "[[faults]]\nafter = \"5s\"\non = \"w1\"\ndo = \"cut\"\npeer = \"database\"\n";
    let long = "[[tasks]]\nname = \"t1\"\nwork = \"50s\"\n";
    let outcome = play("", &[long, TWO, cut]);
    assert_eq!(verdicts(&outcome), [Verdict::AutoRecovered]);
    let stops =
        outcome.verdicts[&Verdict::AutoRecovered].events.iter().find(|event| event.what.contains("stops itself"));
    // 30 s of lease less 3 s of margin after the claim.
    assert_eq!(stops.map(|event| (event.node.as_str(), event.time_ms)), Some(("w1", 27_000)));
}

#[test]
fn the_verdict_set_has_every_interleaving_of_one_moment() {
    // The crash and the end of the work fall on the same moment: the success is recorded, or it is not.
    let crash = "[[faults]]\nafter = \"20s\"\non = \"w1\"\ndo = \"crash\"\n";
    let outcome = play("max_interruptions = 0", &[WORK, TWO, crash]);
    assert_eq!(verdicts(&outcome), [Verdict::AutoRecovered, Verdict::Escalated(Reason::InterruptionsExhausted)]);
}

#[test]
fn a_violation_is_the_last_event_of_its_story() {
    let ablation = ablations().unwrap().into_iter().find(|story| story.name == "fence-complete").unwrap();
    let outcome = run_story(&ablation).unwrap();
    let trace = &outcome.verdicts[&Verdict::Violated(Property::StaleWriteChangesNothing)];
    let last = trace.events.last().unwrap();
    assert!(last.what.contains(Property::StaleWriteChangesNothing.sentence()), "{last}");
    assert_eq!(outcome.recovered_within_ms, None);
}

#[test]
fn a_story_beyond_the_model_is_refused_and_one_that_runs_out_of_epochs_is_cut() {
    let fine = "[queue]\npoll = \"7ms\"\nhorizon = \"24h\"\n";
    let error = run_story(&story("", &[fine, WORK, ONE].concat())).unwrap_err();
    assert!(matches!(error, StoryModelError::TooFine { tick_ms: 1, .. }), "{error}");
    let fault = "[[faults]]\nat = \"claim.reply\"\non = \"w1\"\ndo = \"lose\"\n".repeat(9);
    let error = run_story(&story("", &[WORK, ONE, &fault].concat())).unwrap_err();
    assert_eq!(error.to_string(), "9 faults; the model plays stories of at most 8");
    let fails = "[[tasks]]\nname = \"t1\"\nwork = \"1s\"\nends = [\"error\"]\n";
    let outcome = run_story(&story("max_attempts = 40", &[fails, ONE].concat())).unwrap();
    assert!(outcome.cut);
    assert_eq!(verdicts(&outcome), []);
}

/// What lasts longer than the story can is not over when the story is, however many ticks it measures.
#[test]
fn durations_far_beyond_the_horizon_are_played() {
    let fine = "[queue]\npoll = \"999ms\"\nsweep = \"24h\"\ndeadline = \"24h\"\nhorizon = \"2s\"\n";
    let crash = "[[faults]]\nafter = \"1500ms\"\non = \"w1\"\ndo = \"crash\"\nfor = \"24h\"\n";
    let cut = "[[faults]]\nafter = \"1500ms\"\non = \"w1\"\ndo = \"cut\"\npeer = \"database\"\nfor = \"24h\"\n";
    // Not from 0 s: the moment at which its work would be over has to be later than the longest duration.
    let late = "[[executors]]\nname = \"w1\"\nstart = \"1s\"\n";
    for fault in [crash, cut] {
        let tasks = "[[tasks]]\nname = \"t1\"\nwork = \"24h\"\n";
        // Poll and horizon make a tick of 1 ms of it: 24 h are more ticks than the clock's field holds.
        let text = [fine, tasks, late, fault].concat();
        let outcome = run_story(&story("", &text)).unwrap();
        assert_eq!(verdicts(&outcome), [Verdict::Stuck], "{fault}");
    }
}
