//! Goal: what `sweep`, `validate` and the exports promise. Method: small sweeps; a guard that is missed at once.

use serde_json::Value;

use super::bad_input::{refused, refused_by_parser};
use super::json::documented;
use super::{Place, repository, text};

fn fields(object: &Value) -> Vec<&String> {
    object.as_object().unwrap().keys().collect()
}

#[test]
fn a_sweep_tells_what_it_has_reached_and_goes_on_from_its_state() {
    let place = Place::empty();
    let whole = place.json(&["sweep", "--seeds", "200"]);
    assert_eq!(fields(&whole), fields(&documented("sweep --json")));
    assert_eq!(whole["violations"], Value::Array(Vec::new()));
    assert_eq!((whole["runs"].as_u64(), whole["without"].is_null()), (Some(200), true));
    place.good(&["sweep", "--seeds", "128", "--state", "state.json", "--jobs", "1"]);
    let gone_on = place.json(&["sweep", "--seeds", "72", "--state", "state.json"]);
    for field in ["runs", "variations", "next_seed", "faults", "faults_by_place", "steps", "statements", "virtual_s"] {
        assert_eq!(gone_on[field], whole[field], "{field}");
    }
    refused(&place, &["sweep", "--state", "state.json", "--from", "3"], &["state.json", "--from"]);
    refused(&place, &["sweep", "--state", "state.json", "--without", "stable_key"], &["no guard was off"]);
    place.write("other.json", "{\"leaseproof_sweep\":9}");
    refused(&place, &["sweep", "--state", "other.json"], &["other.json", "version 9", "version 1"]);
}

#[test]
fn what_breaks_is_told_shrunk_and_replayed_with_one_command() {
    let place = Place::empty();
    let output = place.run(&["sweep", "--seeds", "128", "--without", "cas_at_claim", "--save", "found", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = &told["violations"][0];
    assert!(first["complaints"][0].as_str().unwrap().contains("violated(one_current_owner)"), "{first}");
    assert!(first["shrunk"]["faults"].as_u64().unwrap() <= 4, "{first}");
    // As it was found: violated.
    let again: Vec<&str> = first["replay"].as_str().unwrap().split(' ').skip(1).collect();
    let output = place.run(&again);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("violated(one_current_owner)"));
    // As a file: it expects what it shows.
    let again: Vec<&str> = first["shrunk"]["replay"].as_str().unwrap().split(' ').skip(1).collect();
    assert!(place.good(&again).contains("violated(one_current_owner)"));
    // A second sweep finds the same and does not overwrite another's file.
    let file = first["shrunk"]["file"].as_str().unwrap();
    place.write(file, "somebody else's");
    let output = place.run(&["sweep", "--seeds", "128", "--without", "cas_at_claim", "--save", "found"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("is there already"), "{}", text(&output.stderr));
}

#[test]
fn arguments_of_a_sweep_that_do_not_fit_are_refused() {
    let place = Place::empty();
    refused_by_parser(&place, &["sweep", "--only", "1.0"], &["1.0", "17.3"]);
    refused_by_parser(&place, &["sweep", "--seeds", "0"], &["0"]);
    refused_by_parser(&place, &["sweep", "--from", "9223372036854775808"], &["9223372036854775808"]);
    refused_by_parser(&place, &["sweep", "--time", "soon"], &["soon", "250ms"]);
    refused_by_parser(&place, &["sweep", "--without", "boot_identity"], &["boot_identity", "cas_at_claim"]);
    refused_by_parser(&place, &["sweep", "--only", "1", "--state", "x"], &["--state"]);
    refused(&place, &["sweep", "--seeds", "1", "--state", "no/such/folder"], &["--state no/such/folder"]);
}

#[test]
fn a_trace_is_validated_exported_and_refused() {
    let place = Place::empty();
    let story = repository("scenarios/stories/crash-around-the-call.toml");
    place.good(&["replay", &story, "--seed", "7", "--trace", "t.jsonl", "--perfetto", "p.json", "--shiviz", "s.log"]);
    let validate = ["validate", "t.jsonl", "--story", &story];
    let told = place.json(&validate);
    assert_eq!(fields(&told), fields(&documented("validate --json")));
    assert_eq!((&told["holds"], &told["seed"]), (&Value::Bool(true), &7.into()));
    assert!(place.good(&validate).contains("a path of the rules"));
    let written = place.files();
    place.good(&[&validate[..], &["--perfetto", "p2.json", "--shiviz", "s2.log"]].concat());
    let name = |name: &str| place.path().join(name);
    assert_eq!(place.files()[&name("p2.json")], written[&name("p.json")]);
    assert_eq!(place.files()[&name("s2.log")], written[&name("s.log")]);

    let trace = text(&written[&name("t.jsonl")]);
    place.write("t.jsonl", &trace.replacen("\"row_epoch\":1", "\"row_epoch\":2", 1));
    let output = place.run(&[&validate[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["holds"], Value::Bool(false));
    assert!(told["divergence"]["why"].as_str().unwrap().contains("RUNNING epoch 1"), "{told}");
    let output = place.run(&validate);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("no step of the rules") && text(&output.stdout).contains("allowed"));

    place.write("t.jsonl", &trace.replacen("\"leaseproof_trace\":2", "\"leaseproof_trace\":1", 1));
    refused(&place, &validate, &["t.jsonl", "version 1", "version 2", "leaseproof replay"]);
    place.write("t.jsonl", &trace);
    let other = repository("scenarios/stories/overrun.toml");
    refused(&place, &["validate", "t.jsonl", "--story", &other], &["crash-around-the-call", "overrun"]);
    refused(&place, &["validate", "none.jsonl", "--story", &story], &["none.jsonl", "can not be read"]);
    refused(&place, &["replay", &story, "--on", "model", "--perfetto", "x"], &["--on sim"]);
    place.write("mine.toml", "precious = true");
    for flag in ["--perfetto", "--shiviz"] {
        refused(
            &place,
            &["validate", "t.jsonl", "--story", &story, flag, "mine.toml"],
            &[flag, "is there", "no such export"],
        );
    }
}
