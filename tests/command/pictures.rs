//! Goal: what people see: lanes, tables, colours only where they are wanted, exit codes.

use std::process::{Command, Stdio};

use leaseproof_rules::Guard;

use super::{Place, repository, text};

#[test]
fn a_story_is_drawn_with_one_lane_a_node_on_both_rungs() {
    let place = Place::empty();
    let story = repository("scenarios/stories/batch-oom.toml");
    let sim = place.good(&["replay", &story]);
    for part in ["OOM kill", "w1", "w2", "sweeper", "CRASH", "claim → epoch 1", "claim → epoch 3", "auto-recovered"]
    {
        assert!(sim.contains(part), "{part} is missing in:\n{sim}");
    }
    let model = place.good(&["replay", &story, "--on", "model"]);
    for part in ["CRASH", "lease", "requeue", "claims 3 tasks", "auto-recovered"] {
        assert!(model.contains(part), "{part} is missing in:\n{model}");
    }
    for picture in [sim, model] {
        assert!(picture.lines().count() < 40, "not on a screen:\n{picture}");
        assert!(!picture.contains('\u{1b}'), "no colours in a pipe");
        assert!(picture.lines().all(|line| line.trim_end() == line));
    }
}

#[test]
fn the_older_designs_fail_as_the_documentation_shows() {
    let output = Place::empty().run(&["check", "--design", "single-transaction"]);
    assert_eq!(output.status.code(), Some(1));
    let mut table = text(&output.stdout);
    table += &text(&Place::empty().run(&["check", "--design", "commit-running"]).stdout);
    let page = std::fs::read_to_string(repository("docs/model.md")).unwrap();
    let (_, rest) = page.split_once("```text\ncommit-running\n").unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    for line in shown.lines() {
        assert!(table.contains(line), "{line:?} is not in:\n{table}");
    }
    assert!(table.contains("The shortest run against “an outside effect happens at most once"), "{table}");
}

/// Also the one place in the tests where every story runs over as many seeds as the matrix has by default.
#[test]
fn the_readmes_show_the_matrix_that_their_command_prints() {
    let table = Place::empty().good(&["matrix"]);
    for readme in ["README.md", "README.zh-CN.md"] {
        let page = std::fs::read_to_string(repository(readme)).unwrap();
        let (_, rest) = page.split_once("```text\n    verdict").unwrap();
        let (excerpt, _) = rest.split_once("```").unwrap();
        for line in excerpt.lines().skip(1).filter(|line| !["", "…"].contains(line)) {
            // How long it took is the machine's.
            let line = line.rsplit_once("; ").map_or(line, |(line, _)| line);
            assert!(table.contains(line), "{readme}: {line:?} is not in:\n{table}");
        }
    }
}

#[test]
fn the_readmes_show_the_run_that_their_command_draws() {
    let story = repository("scenarios/stories/zombie-calls-late-fenced.toml");
    let drawn = Place::empty().good(&["replay", &story, "--seed", "2"]);
    for readme in ["README.md", "README.zh-CN.md"] {
        let page = std::fs::read_to_string(repository(readme)).unwrap();
        assert!(page.contains("cargo run -- replay scenarios/stories/zombie-calls-late-fenced.toml --seed 2\n"));
        assert!(page.contains(&format!("```text\n{drawn}```")), "{readme} shows another run than this:\n{drawn}");
    }
}

#[test]
fn an_expected_violation_is_exit_0_and_an_unexpected_one_is_exit_1() {
    let place = Place::empty();
    let story = repository("scenarios/ablations/fence-complete.toml");
    let shown = std::fs::read_to_string(&story).unwrap();
    let hopeful =
        place.write("hopeful.toml", &shown.replace("violated(stale_write_changes_nothing)", "auto-recovered"));
    for rung in ["model", "sim"] {
        let out = place.good(&["replay", &story, "--on", rung]);
        assert!(out.contains("VIOLATED: stale"), "{out}");
        assert!(out.contains("changes no run but its own (stale_write_changes_nothing)"), "{out}");
        let output = place.run(&["replay", &hopeful.display().to_string(), "--on", rung]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stdout).contains("not as expected"), "{}", text(&output.stdout));
    }
}

#[test]
fn a_bound_that_is_missed_is_exit_1_on_both_rungs() {
    let place = Place::empty();
    let story = std::fs::read_to_string(repository("scenarios/stories/batch-oom.toml")).unwrap();
    let tight = place.write("tight.toml", &story.replace("recovers_within = \"60s\"", "recovers_within = \"1s\""));
    for rung in ["model", "sim"] {
        let output = place.run(&["replay", &tight.display().to_string(), "--on", rung]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stdout).contains("expected within 1s"), "{}", text(&output.stdout));
    }
}

#[test]
fn the_matrix_has_a_row_with_question_and_verdict_for_each_story() {
    let place = Place::empty();
    let table = place.good(&["matrix", "--seeds", "2", "--only", "call-reply-lost"]);
    for part in
        ["call-reply-lost-status-query", "escalated(outcome_unknown)", "2/2", "May the task run again?", "2 of 2"]
    {
        assert!(table.contains(part), "{part} is missing in:\n{table}");
    }
}

#[test]
fn check_names_the_broken_property_and_shows_the_run() {
    let place = Place::empty();
    let output = place.run(&["check", "--without", "fence_complete"]);
    assert_eq!(output.status.code(), Some(1));
    let out = text(&output.stdout);
    for part in ["changes no run but its own", "The shortest run against", "w1: complete t1 epoch 1", "1 violated"] {
        assert!(out.contains(part), "{part} is missing in:\n{out}");
    }
    let output = place.run(&["check", "--ablations"]);
    assert_eq!(output.status.code(), Some(1));
    let out = text(&output.stdout);
    let all = Guard::ALL.len();
    assert!(out.contains(&format!("{all} of {all} guards are missed")), "{out}");
    // The table in the documentation is this one, without the column of what breaks later.
    let page = std::fs::read_to_string(repository("docs/model.md")).unwrap();
    let (_, rest) = page.split_once("| Without | breaks |").unwrap();
    let shown: Vec<Vec<&str>> = rest
        .lines()
        .skip(2)
        .map_while(|line| line.strip_prefix("| `"))
        .map(|line| line.trim_end_matches(" |").split(" | ").map(|cell| cell.trim_end_matches('`')).collect())
        .collect();
    assert_eq!(shown.len(), all);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed: Vec<String> = out.lines().map(words).collect();
    for row in shown {
        let [guard, property, steps, on] = row[..] else { panic!("{row:?}") };
        let begins = format!("{guard} {property} {steps} ");
        let found = printed.iter().any(|line| line.starts_with(&begins) && line.ends_with(&format!(" {on}")));
        assert!(found, "{row:?} is not in:\n{out}");
    }
}

#[test]
fn the_documentation_shows_which_steps_the_checks_have_seen() {
    let table = Place::empty().good(&["check", "--coverage"]);
    let page = std::fs::read_to_string(repository("docs/model.md")).unwrap();
    assert!(page.contains(&format!("```text\n{table}```\n")), "docs/model.md shows another table than this:\n{table}");
}

#[test]
fn what_the_design_does_not_promise_is_shown_as_the_documentation_has_it() {
    let output = Place::empty().run(&["check", "--beyond"]);
    assert_eq!(output.status.code(), Some(1));
    let table = text(&output.stdout);
    let page = std::fs::read_to_string(repository("docs/model.md")).unwrap();
    let (_, rest) = page.split_once("```text\nin ").unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    let lines: Vec<&str> = shown.lines().skip(1).collect();
    assert_eq!(lines.len(), 16);
    for line in lines {
        assert!(table.contains(line), "{line:?} is not in:\n{table}");
    }
    assert!(table.contains("database: fails over and loses its last commit"), "{table}");
}

#[test]
fn a_fault_that_never_strikes_is_not_passed_over() {
    let place = Place::empty();
    let shown = std::fs::read_to_string(repository("scenarios/stories/completion-reply-lost.toml")).unwrap();
    let late = shown.replace("do = \"lose\"", "nth = 99\ndo = \"lose\"").replace("recovers_within = \"5s\"", "");
    let late = place.write("late.toml", &late);
    for rung in [&["--on", "model"][..], &["--seeds", "5"]] {
        let output = place.run(&[&["replay", &late.display().to_string()], rung].concat());
        assert_eq!(output.status.code(), Some(1), "{rung:?}");
        let out = text(&output.stdout);
        assert!(out.contains("not as expected: faults[0], on w1, never strikes"), "{out}");
    }
    // One seed alone proves nothing either way, and says so.
    let one = place.good(&["replay", &late.display().to_string()]);
    assert!(one.contains("after the start; no fault struck"), "{one}");
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let place = Place::empty();
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaseproof"));
    command.args(["replay", &repository("scenarios/stories/batch-oom.toml")]).current_dir(place.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn help_has_examples() {
    let place = Place::empty();
    let commands = ["", "matrix", "replay", "check", "queue"].map(str::to_owned);
    let queue = ["migrate", "enqueue", "work", "sweep", "list", "show", "resolve"].map(|verb| format!("queue {verb}"));
    for command in commands.into_iter().chain(queue) {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help = place.good(&args);
        assert!(help.contains("Examples:\n  leaseproof "), "{args:?}:\n{help}");
    }
}
