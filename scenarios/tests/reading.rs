//! What a story file may say, and what a wrong one is answered with.

use leaseproof_rules::{Guard, Property};
use leaseproof_scenarios::{
    Act, Millis, Node, Op, Phase, Point, Story, StoryError, Trigger, Verdict, ablations, load, parse, stories,
};

const GOOD: &str = r#"version = 1
title = "t"
question = "q?"
requirements = ["P1"]

[policy]
lease = "30s"
heartbeat = "10s"

[[tasks]]
name = "t1"
work = "20s"

[[executors]]
name = "w1"

[[faults]]
at = "claim.reply"
on = "w1"
do = "lose"

[expect]
verdicts = ["auto-recovered"]
"#;

/// The error for the good story with one piece of text replaced.
fn wrong(from: &str, to: &str) -> StoryError {
    assert!(GOOD.contains(from), "{from:?} is not in the story");
    parse("x/story.toml", &GOOD.replacen(from, to, 1)).expect_err("the story must be refused")
}

#[test]
fn a_good_story_is_read_with_its_defaults() {
    let story = parse("x/some-name.toml", GOOD).expect("good");
    assert_eq!(story.name, "some-name");
    assert_eq!(story.timing.poll_ms, 1_000);
    assert_eq!(story.faults[0].on, Node::Executor(0));
    assert_eq!(story.faults[0].act, Act::Lose { times: 1 });
    let point = Point { op: Op::Claim, phase: Phase::Reply };
    assert_eq!(story.faults[0].trigger, Trigger::At { point, nth: 1 });
    assert_eq!(story.tick_ms(), 1_000);
}

#[test]
fn every_shipped_story_is_read_and_the_names_are_the_files() {
    let all = stories().expect("all good");
    assert!(all.len() >= 12, "{}", all.len());
    assert!(all.iter().all(|story| story.without.is_none()));
    assert!(all.iter().any(|story| story.name == "batch-oom"));
}

#[test]
fn every_guard_has_an_ablation_that_expects_a_broken_property() {
    let all = ablations().expect("all good");
    assert!(all.iter().all(|story| story.without.is_some_and(Guard::on_code)), "the code can not be without it");
    for guard in Guard::ALL.into_iter().filter(|guard| guard.on_code()) {
        let story = all.iter().find(|s| s.without == Some(guard)).unwrap_or_else(|| panic!("no story without {guard}"));
        assert!(story.expect.verdicts.iter().any(|v| v.broken().is_some()), "{}", story.name);
    }
}

#[test]
fn an_unknown_field_is_refused_with_its_line() {
    let error = wrong("work = \"20s\"", "work = \"20s\"\nworks = 1");
    assert_eq!(error.line, Some(13), "{error}");
    assert!(error.to_string().contains("works") && error.to_string().contains("effects"), "{error}");
}

#[test]
fn a_negative_duration_is_refused_with_the_accepted_forms() {
    let error = wrong("\"20s\"", "\"-20s\"");
    assert_eq!(error.line, Some(12), "{error}");
    assert!(error.to_string().contains("250ms"), "{error}");
}

#[test]
fn a_duration_without_unit_or_too_large_is_refused() {
    for text in ["20", "s", "", "1.5s", "99999999999999999999s", "18446744073709551615h"] {
        let error = wrong("\"20s\"", &format!("{text:?}"));
        assert!(error.to_string().contains("whole number"), "{text}: {error}");
    }
}

#[test]
fn a_fault_at_an_unknown_point_is_refused_with_the_points() {
    let error = wrong("claim.reply", "claim.answer");
    assert_eq!((error.line, error.field.as_str()), (Some(18), "faults[0].at"), "{error}");
    assert!(error.to_string().contains("complete.request"), "{error}");
}

#[test]
fn a_node_that_does_not_exist_is_refused_with_the_nodes() {
    let error = wrong("on = \"w1\"", "on = \"w9\"");
    assert_eq!((error.line, error.field.as_str()), (Some(19), "faults[0].on"), "{error}");
    assert!(error.to_string().contains("w1, sweeper, database, third_party"), "{error}");
}

#[test]
fn a_point_at_which_the_node_never_is_is_refused() {
    let error = wrong("claim.reply", "sweep.reply");
    assert!(error.to_string().contains("never at this point"), "{error}");
}

#[test]
fn a_policy_that_can_not_work_is_refused_with_the_reason() {
    let error = wrong("heartbeat = \"10s\"", "heartbeat = \"20s\"");
    assert_eq!(error.field, "policy.heartbeat");
    assert!(error.to_string().contains("one lost heartbeat would end the lease"), "{error}");
}

#[test]
fn parts_of_a_fault_that_do_not_go_together_are_refused() {
    for (extra, field) in [
        ("for = \"3s\"", "faults[0].for"),
        ("peer = \"database\"", "faults[0].peer"),
        ("after = \"3s\"", "faults[0]"),
        ("nth = 0", "faults[0].nth"),
        ("times = 0", "faults[0].times"),
    ] {
        let error = wrong("do = \"lose\"", &format!("do = \"lose\"\n{extra}"));
        assert_eq!(error.field, field, "{extra}: {error}");
        assert!(error.line.is_some(), "{extra}: {error}");
    }
}

#[test]
fn an_unknown_version_word_or_verdict_is_refused_with_what_is_accepted() {
    assert!(wrong("version = 1", "version = 2").to_string().contains("reads version 1"));
    assert!(wrong("auto-recovered", "fine").to_string().contains("escalated(overrun)"));
    assert!(wrong("\"P1\"", "\"P9\"").to_string().contains("E-A"));
    assert!(wrong("do = \"lose\"", "do = \"loose\"").to_string().contains("lose, crash, pause, cut"));
    assert!(wrong("name = \"w1\"", "name = \"database\"").to_string().contains("names another node"));
}

#[test]
fn a_number_out_of_range_is_refused_with_its_field_and_the_range() {
    for (from, to, field, accepted) in [
        ("\"20s\"", "\"25h\"", "tasks[0].work", "0s to 24h"),
        ("lease = \"30s\"", "lease = \"1441m\"", "policy.lease", "0s to 24h"),
        ("do = \"lose\"", "do = \"crash\"\nfor = \"9999h\"", "faults[0].for", "0s to 24h"),
        ("do = \"lose\"", "do = \"lose\"\ntimes = 101", "faults[0].times", "0 to 100"),
        ("do = \"lose\"", "do = \"lose\"\nnth = 4294967296", "faults[0].nth", "0 to 100"),
        ("[[tasks]]", "max_attempts = -1\n[[tasks]]", "policy.max_attempts", "0 to 100"),
        ("[expect]", "[expect]\nruns_max = 101", "expect.runs_max", "0 to 100"),
    ] {
        let error = wrong(from, to);
        assert_eq!(error.field, field, "{error}");
        assert!(error.line.is_some() && error.why.contains(accepted), "{error}");
    }
}

#[test]
fn a_value_of_the_wrong_type_is_refused_with_its_field() {
    for (from, to, field, line) in [
        ("\"20s\"", "20", "tasks[0].work", 12),
        ("title = \"t\"", "title = 3", "title", 2),
        ("on = \"w1\"", "on = [\"w1\"]", "faults[0].on", 19),
        ("[\"P1\"]", "[\"P1\", 7]", "requirements[1]", 4),
        ("lease = \"30s\"", "\"le\\u001base\" = \"30s\"", "policy.le\\u{1b}ase", 7),
    ] {
        let error = wrong(from, to);
        assert_eq!((error.field.as_str(), error.line), (field, Some(line)), "{error}");
    }
}

#[test]
fn a_name_that_is_empty_or_not_plain_is_refused_with_the_accepted_form() {
    let effect = "work = \"20s\"\n[[tasks.effects]]\nafter = \"1s\"\nkey = ";
    for bad in ["\"\"", "\"a b\"", "\"\\u001b[31m\"", "\"a\\n\"", "\"\\u202e\""] {
        for (from, to, field) in [
            ("name = \"t1\"", format!("name = {bad}"), "tasks[0].name"),
            ("name = \"w1\"", format!("name = {bad}"), "executors[0].name"),
            ("work = \"20s\"", format!("{effect}{bad}"), "tasks[0].effects[0].key"),
        ] {
            let error = wrong(from, &to);
            assert_eq!(error.field, field, "{error}");
            assert!(error.why.contains("1 to 40 letters"), "{error}");
            assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
        }
    }
    for (from, to, field) in [
        ("title = \"t\"", "title = \"\\u001b[2J\"", "title"),
        ("question = \"q?\"", "question = \"a\\u0007?\"", "question"),
        ("question = \"q?\"", "question = \"\"", "question"),
        ("requirements", "sources = [\"https://example.org\", \"\\u001b]0;t\"]\nrequirements", "sources[1]"),
    ] {
        let error = wrong(from, to);
        assert_eq!((error.field.as_str(), error.line.is_some()), (field, true), "{error}");
        assert!(error.why.contains("control characters"), "{error}");
    }
    let unnamed = parse("x/two words.toml", GOOD).expect_err("not a name");
    assert!(unnamed.why.contains("the story's name"), "{unnamed}");
}

#[test]
fn a_fault_that_can_have_no_effect_is_refused() {
    let fault = "at = \"claim.reply\"\non = \"w1\"\ndo = \"lose\"";
    for (to, field, says) in [
        ("after = \"10m\"\non = \"w1\"\ndo = \"crash\"", "faults[0].after", "less than 10m"),
        ("after = \"1s\"\non = \"w1\"\ndo = \"pause\"\nfor = \"0s\"", "faults[0].for", "how long"),
        ("after = \"1s\"\non = \"w1\"\ndo = \"cut\"\npeer = \"w1\"", "faults[0].peer", "never speak"),
        ("after = \"1s\"\non = \"w1\"\ndo = \"cut\"\npeer = \"sweeper\"", "faults[0].peer", "never speak"),
        ("after = \"1s\"\non = \"database\"\ndo = \"cut\"\npeer = \"third_party\"", "faults[0].peer", "never speak"),
        (
            "after = \"1s\"\non = \"w1\"\ndo = \"cut\"\npeer = \"database\"\nfor = \"0s\"",
            "faults[0].for",
            "longer than 0",
        ),
        ("at = \"call.request\"\non = \"w1\"\ndo = \"lose\"", "faults[0].at", "makes an outside call"),
        ("after = \"1s\"\non = \"third_party\"\ndo = \"crash\"", "faults[0].on", "makes an outside call"),
        (
            "after = \"1s\"\non = \"w1\"\ndo = \"cut\"\npeer = \"third_party\"",
            "faults[0].peer",
            "makes an outside call",
        ),
    ] {
        let error = wrong(fault, to);
        assert_eq!(error.field, field, "{error}");
        assert!(error.why.contains(says), "{error}");
    }
    let early = GOOD.replacen("name = \"w1\"", "name = \"w1\"\nstart = \"9s\"", 1);
    let early = early.replacen(fault, "after = \"8s\"\non = \"w1\"\ndo = \"crash\"", 1);
    let error = parse("x/story.toml", &early).expect_err("nothing to strike");
    assert!(error.field == "faults[0].after" && error.why.contains("starts at 9s"), "{error}");
}

#[test]
fn a_file_without_end_is_not_read_to_its_end() {
    let error = load(std::path::Path::new("/dev/zero")).expect_err("no story");
    assert!(error.to_string().starts_with("/dev/zero: can not be read: it is longer than 1 MiB"), "{error}");
}

#[test]
fn an_unreadable_file_is_one_clear_error() {
    let error = load(std::path::Path::new("no/such/story.toml")).expect_err("not there");
    assert!(error.to_string().starts_with("no/such/story.toml: can not be read"), "{error}");
}

#[test]
fn verdicts_are_written_and_read_alike_and_ordered_from_best_to_worst() {
    let all = Verdict::all();
    for verdict in &all {
        assert_eq!(verdict.to_string().parse::<Verdict>().as_ref(), Ok(verdict));
    }
    assert!(all.is_sorted());
    assert_eq!(Verdict::Stuck.broken(), Some(Property::EventuallyResolved));
    assert_eq!(Verdict::AutoRecovered.broken(), None);
}

proptest::proptest! {
    #[test]
    fn a_duration_is_shown_as_it_is_read(ms in 0u64..10_000_000) {
        proptest::prop_assert_eq!(Millis::parse(&Millis(ms).to_string()), Ok(Millis(ms)));
    }

    #[test]
    fn no_text_whatever_makes_the_reader_panic(text in ".{0,300}") {
        let _ = parse("any.toml", &text);
        let _ = parse("any.toml", &GOOD.replacen("\"20s\"", &text, 1));
    }
}

/// As a file, read back, it is the same story.
fn written(story: &Story) -> Result<Story, StoryError> {
    parse(&format!("{}.toml", story.name), &story.to_toml())
}

#[test]
fn a_story_that_is_written_is_read_back_the_same() {
    for story in stories().unwrap().into_iter().chain(ablations().unwrap()) {
        assert_eq!(written(&story), Ok(story.clone()), "{}", story.to_toml());
    }
    let mut odd = stories().unwrap().remove(0);
    odd.title = "quotes \" and \\ and – others".to_owned();
    odd.question = "one line, ''' and \"\"\"".to_owned();
    odd.seed = Some(7);
    assert_eq!(written(&odd), Ok(odd.clone()), "{}", odd.to_toml());
}

#[test]
fn a_seed_is_a_number_that_is_not_negative() {
    let with = |seed: &str| GOOD.replacen("[policy]", &format!("seed = {seed}\n\n[policy]"), 1);
    assert_eq!(parse("x.toml", &with("7")).map(|story| story.seed), Ok(Some(7)));
    let error = parse("x.toml", &with("-1")).unwrap_err();
    assert_eq!((error.line, error.field.as_str()), (Some(6), "seed"), "{error}");
}
