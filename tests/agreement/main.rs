//! Goal: the model and the real code say the same of stories that nobody has thought of. Method: stories made by rule, each in
//! every interleaving on the model and with some seeds on the code; what the code does must be among what the model finds.

mod made;
mod one_fault;
mod two_faults;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use leaseproof_model::story::{StoryOutcome, run_story};
use leaseproof_scenarios::{Story, Trigger, parse};
use leaseproof_sim::run::Run;

/// In how far a run of the code is not one of the model's.
fn strays(story: &Story, model: &StoryOutcome, run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    if !model.verdicts.contains_key(&run.verdict) {
        let known: Vec<String> = model.verdicts.keys().map(ToString::to_string).collect();
        wrong.push(format!("the code ends in {}, the model in {}", run.verdict, known.join(", ")));
    }
    // By its time a fault may also strike when everything is over. That is where the model ends.
    let at_point = |fault: &usize| matches!(story.faults[*fault].trigger, Trigger::At { .. });
    if run.struck.iter().filter(|fault| at_point(fault)).any(|fault| !model.struck.contains(fault)) {
        wrong.push(format!("on the code faults {:?} strike, on the model {:?}", run.struck, model.struck));
    }
    let (least, most) = (model.effects_min, model.effects_max);
    // From three on the model does not count.
    if run.effects_min < least || run.effects_max.min(3) > most {
        let (min, max) = (run.effects_min, run.effects_max);
        wrong.push(format!("on the code the effect happens {min} to {max}×, on the model {least} to {most}×"));
    }
    if run.runs_max > model.runs_max {
        wrong.push(format!("on the code there are {} runs, on the model {} at most", run.runs_max, model.runs_max));
    }
    wrong.extend(run.findings.iter().filter(|finding| finding.property.is_none()).map(|finding| finding.why.clone()));
    wrong.extend(run.defects.iter().cloned());
    wrong
}

/// What of a story the code does otherwise, in words, with the story.
fn compared(name: &str, text: &str, seeds: u64) -> Vec<String> {
    let story: Story = parse(&format!("{name}.toml"), text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let model = run_story(&story).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
    assert!(!model.cut, "{name}: the search was cut\n{text}");
    let mut wrong = Vec::new();
    for seed in 0..seeds {
        let run =
            leaseproof_sim::run::run_story(&story, seed).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        wrong.extend(strays(&story, &model, &run).into_iter().map(|why| format!("{name} seed {seed}: {why}")));
    }
    wrong
}

/// Compares all, on as many threads as there are processors. What comes out does not depend on them.
fn compare_all(stories: &[(String, String)], seeds: u64) {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((name, text)) = stories.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = compared(name, text, seeds);
                    wrong.lock().unwrap().extend(found.into_iter().map(|why| (why, text.clone())));
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    let lines: Vec<&str> = wrong.iter().map(|(why, _)| why.as_str()).collect();
    let first = wrong.first().map_or("", |(_, text)| text);
    assert!(wrong.is_empty(), "{} disagreements:\n{}\nthe first of them:\n{first}", lines.len(), lines.join("\n"));
}
