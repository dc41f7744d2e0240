//! Goal: a trace is accepted exactly if it is a path of the rules.
//! Method: the traces of all shipped stories are accepted; each is corrupted in every way that applies to it, and then refused.

use std::collections::BTreeMap;

use leaseproof_scenarios::{Story, ablations, stories};
use leaseproof_sim::run::{Run, run_story};
use leaseproof_sim::trace::{self, Line};
use leaseproof_sim::validate::{FileError, validate, validate_file};

fn all() -> Vec<(Story, Run)> {
    let all = stories().unwrap().into_iter().chain(ablations().unwrap());
    all.flat_map(|story| (0..2).map(move |seed| (story.clone(), run_story(&story, seed).unwrap()))).collect()
}

/// The position of the nth line of which this holds.
fn nth(lines: &[Line], nth: usize, is: impl Fn(&Line) -> bool) -> Option<usize> {
    lines.iter().enumerate().filter(|(_, line)| is(line)).map(|(index, _)| index).nth(nth)
}

type Corruption = fn(&mut Vec<Line>) -> Option<()>;

fn first(lines: &mut [Line], event: &str, change: impl Fn(&mut Line)) -> Option<()> {
    let index = nth(lines, 0, |line| line.event == event)?;
    change(&mut lines[index]);
    Some(())
}

/// Each by what is done to the trace. `None`: it has no such line.
const CORRUPTIONS: [(&str, Corruption); 26] = [
    ("a claim of another epoch", |lines| first(lines, "claim", |line| line.row_epoch = Some(7))),
    ("a claim out of nowhere", |lines| first(lines, "claim", |line| line.from = Some("RUNNING".into()))),
    ("a claim that is left out", |lines| {
        nth(lines, 0, |line| line.event == "claim").map(|index| drop(lines.remove(index)))
    }),
    ("a claim that is told twice", |lines| {
        let index = nth(lines, 0, |line| line.event == "claim")?;
        let line = lines[index].clone();
        lines.insert(index, line);
        Some(())
    }),
    ("a lease that is longer", |lines| first(lines, "claim", |line| line.lease_until_ms = Some(99_000))),
    ("a write without the database's clock", |lines| first(lines, "claim", |line| line.now_ms = None)),
    ("a heartbeat of another's run", |lines| first(lines, "heartbeat", |line| line.epoch = Some(99))),
    ("a heartbeat long after the lease", |lines| {
        first(lines, "heartbeat", |line| {
            line.now_ms = line.now_ms.map(|now| now + 600_000);
            line.lease_until_ms = line.lease_until_ms.map(|until| until + 600_000);
        })
    }),
    ("a completion by another node", |lines| first(lines, "complete", |line| line.node = "sweeper".into())),
    ("a completion to FAIL", |lines| first(lines, "complete", |line| line.to = Some("FAIL".into()))),
    ("a completion without a good end of its handler", |lines| {
        let epoch = lines.iter().find(|line| line.event == "complete")?.epoch;
        let end = nth(lines, 0, |line| line.event == "run_end" && line.epoch == epoch)?;
        lines.remove(end);
        Some(())
    }),
    ("a retry that costs nothing", |lines| first(lines, "retry", |line| line.attempts = Some(0))),
    ("a retry that is due at once", |lines| first(lines, "retry", |line| line.due_ms = line.now_ms)),
    ("a requeue under a live lease", |lines| {
        first(lines, "requeue", |line| {
            line.now_ms = Some(0);
            line.due_ms = Some(0);
        })
    }),
    ("a requeue that is not counted", |lines| first(lines, "requeue", |line| line.interruptions = Some(0))),
    ("a handing over for another reason", |lines| {
        first(lines, "escalate", |line| line.reason = Some("not_retryable".into()))
    }),
    ("a call without an intent", |lines| {
        first(lines, "call", |_| ())?;
        nth(lines, 0, |line| line.event == "intent").map(|index| drop(lines.remove(index)))
    }),
    ("an effect that nobody has called for", |lines| {
        nth(lines, 0, |line| line.event == "call").map(|index| drop(lines.remove(index)))
    }),
    ("an effect that counts as two", |lines| first(lines, "effect", |line| line.count = Some(2))),
    ("an effect after the outcome that tells of it", |lines| {
        let outcome = nth(lines, 0, |line| line.event == "outcome" && line.entry.as_deref() == Some("DONE"))?;
        let effect = nth(&lines[..outcome], 0, |line| line.event == "effect")?;
        let mut moved = lines.remove(effect);
        moved.t_ns = lines[outcome - 1].t_ns;
        lines.insert(outcome, moved);
        Some(())
    }),
    ("an answer that is not true", |lines| {
        first(lines, "ask", |line| {
            let other = if line.entry.as_deref() == Some("DONE") { "NOT_DONE" } else { "DONE" };
            line.entry = Some(other.into());
        })
    }),
    ("a refusal of what the rules apply", |lines| {
        first(lines, "complete", |line| {
            let refused = Line {
                event: "refuse".into(),
                verb: Some("complete".into()),
                row_epoch: line.epoch,
                to: None,
                attempts: None,
                interruptions: None,
                ..line.clone()
            };
            *line = refused;
        })
    }),
    ("a handler of a dead process", |lines| {
        let crash = nth(lines, 0, |line| line.event == "crash" && line.node.starts_with('w'))?;
        let node = lines[crash].node.clone();
        let (begun, work) = lines[..crash].iter().enumerate().rev().find(|(_, line)| {
            line.node == node && (line.event == "run_end" || line.event == "run_begin" || line.event == "call")
        })?;
        let mut moved = Line { t_ns: lines[crash].t_ns, ..work.clone() };
        moved.t_ns += 1;
        lines.remove(begun);
        lines.insert(crash, moved);
        Some(())
    }),
    ("two events in the wrong order", |lines| {
        let index = (2..lines.len()).find(|index| lines[*index].t_ns > lines[*index - 1].t_ns)?;
        lines.swap(index, index - 1);
        Some(())
    }),
    ("an end too early", |lines| {
        let last = nth(lines, 0, |line| line.event == "resolved" || line.event == "horizon")?;
        lines.truncate(last);
        Some(())
    }),
    ("an event of no name", |lines| first(lines, "start", |line| line.event = "begin".into())),
];

#[test]
fn every_trace_is_a_path_of_the_rules_and_no_corrupted_one_is() {
    let mut tried: BTreeMap<&str, u32> = BTreeMap::new();
    for (story, run) in all() {
        assert_eq!(validate(&story, &run.lines), Ok(()), "{} seed {}", story.name, run.header.seed);
        for (what, corrupt) in CORRUPTIONS {
            let mut lines = run.lines.clone();
            // A run without a guard is held against the rules without it: what is then allowed, is.
            if story.without.is_some() || corrupt(&mut lines).is_none() {
                continue;
            }
            *tried.entry(what).or_default() += 1;
            let found = validate(&story, &lines);
            let seed = run.header.seed;
            assert!(found.is_err(), "{} seed {seed}: {what} was not seen", story.name);
            let said = found.unwrap_err();
            assert!(!said.why.is_empty() && !said.allowed.is_empty(), "{what}: {said}");
        }
    }
    let never: Vec<&str> = CORRUPTIONS.iter().map(|(what, _)| *what).filter(|what| !tried.contains_key(what)).collect();
    assert_eq!(never, [""; 0], "no trace has the lines for these");
}

/// A run without a guard is a path of the rules without that guard, and not of the rules.
#[test]
fn a_run_that_breaks_something_is_no_path_of_the_rules() {
    let story = ablations().unwrap().into_iter().find(|story| story.name == "fence-complete").unwrap();
    let run = run_story(&story, 0).unwrap();
    assert_eq!(validate(&story, &run.lines), Ok(()));
    let guarded = Story { without: None, ..story };
    let said = validate(&guarded, &run.lines).unwrap_err().to_string();
    assert!(
        said.contains("\"event\":\"complete\"") && said.contains("StaleEpoch") && said.contains("RUNNING epoch 3"),
        "{said}"
    );
    assert!(said.contains("allowed: ") && said.contains("complete of epoch 3 to SUCCESS"), "{said}");
}

#[test]
fn a_trace_from_a_file_is_held_against_its_story() {
    let story = stories().unwrap().into_iter().find(|story| story.name == "batch-oom").unwrap();
    let run = run_story(&story, 7).unwrap();
    assert_eq!(validate_file(&story, run.trace.as_bytes()).unwrap(), run.lines.len());
    let other = stories().unwrap().into_iter().find(|story| story.name == "overrun").unwrap();
    assert!(matches!(validate_file(&other, run.trace.as_bytes()), Err(FileError::OtherStory { .. })));
    let mut lines = run.lines.clone();
    let index = nth(&lines, 1, |line| line.event == "claim").unwrap();
    lines[index].row_epoch = Some(5);
    let text: String = std::iter::once(trace::text(&run.header))
        .chain(lines.iter().map(trace::text))
        .map(|line| line + "\n")
        .collect();
    let said = validate_file(&story, text.as_bytes()).unwrap_err().to_string();
    assert!(said.starts_with(&format!("line {} is no step of the rules", index + 2)), "{said}");
}
