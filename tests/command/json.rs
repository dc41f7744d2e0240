//! Goal: the JSON contracts: what each command prints is what `docs/json.md` shows, field for field, and the fields of
//! the contract have their types; and value for value, but for times, ids and hashes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Place, repository, text};

/// The example under a heading of `docs/json.md`.
pub fn documented(heading: &str) -> Value {
    documented_nth(heading, 0)
}

/// The n-th example there.
fn documented_nth(heading: &str, nth: usize) -> Value {
    let page = std::fs::read_to_string(repository("docs/json.md")).unwrap();
    let (_, section) = page.split_once(&format!("## `{heading}`\n")).unwrap_or_else(|| panic!("no section {heading}"));
    let (section, _) = section.split_once("\n## ").unwrap_or((section, ""));
    let block = section.split("```json\n").nth(nth + 1).unwrap_or_else(|| panic!("no example {nth} of {heading}"));
    let (block, _) = block.split_once("```").unwrap();
    serde_json::from_str(block).unwrap_or_else(|error| panic!("{heading}: {error}"))
}

/// Objects have the same fields, lists the same kind of members.
pub fn same_shape(place: &str, shown: &Value, printed: &Value) {
    match (shown, printed) {
        (Value::Object(shown), Value::Object(printed)) => {
            let fields = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<BTreeSet<_>>();
            // What these maps are keyed by is data.
            if !["verdicts", "sim_runs", "payload", "result"].iter().any(|name| place.ends_with(name)) {
                assert_eq!(fields(shown), fields(printed), "{place}");
                for (name, value) in shown {
                    same_shape(&format!("{place}.{name}"), value, &printed[name]);
                }
            }
        }
        (Value::Array(shown), Value::Array(printed)) => {
            if let (Some(shown), Some(printed)) = (shown.first(), printed.first()) {
                same_shape(&format!("{place}[]"), shown, printed);
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        (Value::Bool(_) | Value::String(_), Value::Bool(_) | Value::String(_)) if place.ends_with("holds") => {}
        (shown, printed) => assert_eq!(kind(shown), kind(printed), "{place}"),
    }
}

/// What differs from run to run, or with the machine.
fn differs(field: &str) -> bool {
    ["seconds", "trace_sha256", "actor"].contains(&field) || field.ends_with("_at_ms") || field == "at_ms"
}

/// Whether the one is shown for the other: the same values. A list may be shown by its first members.
fn agrees(shown: &Value, printed: &Value) -> Result<(), String> {
    match (shown, printed) {
        (Value::Object(one), Value::Object(other)) => {
            if !one.keys().eq(other.keys()) {
                return Err(format!("{:?} and {:?}", one.keys(), other.keys()));
            }
            let mut fields = one.iter().filter(|(field, _)| !differs(field));
            fields.try_for_each(|(field, value)| agrees(value, &other[field]).map_err(|why| format!("{field}: {why}")))
        }
        (Value::Array(one), Value::Array(other)) if one.len() <= other.len() && one.is_empty() == other.is_empty() => {
            one.iter().zip(other).try_for_each(|(one, other)| agrees(one, other))
        }
        (one, other) if one == other => Ok(()),
        (one, other) => Err(format!("shown is {one}, printed is {other}")),
    }
}

#[track_caller]
fn same(shown: &Value, printed: &Value) {
    agrees(shown, printed).unwrap_or_else(|why| panic!("docs/json.md: {why}"));
}

/// The member of a list that has these values.
fn member<'a>(list: &'a Value, like: &Value, fields: &[&str]) -> &'a Value {
    let fits = |member: &&Value| fields.iter().all(|field| member[field] == like[field]);
    list.as_array().unwrap().iter().find(fits).unwrap_or_else(|| panic!("none like {like}"))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn assert_strings(value: &Value) {
    assert!(value.as_array().unwrap().iter().all(Value::is_string), "{value}");
}

#[test]
fn matrix() {
    let rows = Place::empty().json(&["matrix", "--seeds", "3"]);
    let rows = rows.as_array().unwrap();
    assert!(rows.len() >= 12);
    for row in rows {
        same_shape("matrix", &documented("matrix --json")[0], row);
        let name = row["scenario"].as_str().unwrap();
        assert!(row["question"].as_str().unwrap().ends_with('?'), "{name}");
        for set in ["expected", "model", "sim"] {
            assert_strings(&row[set]);
            let members: Vec<&str> = row[set].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
            assert!(!members.is_empty() && members.is_sorted(), "{name}: {set}");
        }
        assert_eq!(row["agree"], true, "{row}");
        assert_eq!(row["seeds"], 3);
        assert!(row["effects_max"].is_u64(), "{name}");
        assert!(row["recovered_within_s"].is_f64(), "{name}");
    }
}

#[test]
fn the_example_of_the_matrix_is_what_is_printed() {
    same(&documented("matrix --json"), &Place::empty().json(&["matrix", "--only", "crash-around-the-call"]));
}

#[test]
fn matrix_is_the_same_every_time_but_for_seconds() {
    let place = Place::empty();
    let mut told: Vec<Value> = (0..2).map(|_| place.json(&["matrix", "--seeds", "4", "--only", "crash"])).collect();
    for row in told.iter_mut().flat_map(|rows| rows.as_array_mut().unwrap()) {
        row.as_object_mut().unwrap().remove("seconds").unwrap();
    }
    assert_eq!(told[0], told[1]);
}

#[test]
fn check_with_all_guards() {
    let rows = Place::empty().json(&["check"]);
    for row in rows.as_array().unwrap() {
        same_shape("check", &documented("check --json")[0], row);
        assert_eq!((&row["design"], &row["without"], &row["holds"]), (&"lease".into(), &Value::Null, &true.into()));
        assert!(["always", "sometimes", "eventually"].contains(&row["kind"].as_str().unwrap()));
        assert!(row["states"].as_u64().unwrap() > 1_000_000);
        assert!(row["trace_len"].is_u64() && row["seconds"].is_f64());
    }
}

#[test]
fn check_without_a_guard() {
    let output = Place::empty().run(&["check", "--without", "cas_at_claim", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let rows: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let broken = rows.as_array().unwrap().iter().find(|row| row["property"] == "one_current_owner").unwrap();
    same(&documented("check --json")[0], broken);
    assert_eq!((&broken["without"], &broken["holds"]), (&"cas_at_claim".into(), &false.into()));
    assert_eq!(broken["trace"].as_array().unwrap().len() as u64, broken["trace_len"].as_u64().unwrap());
}

#[test]
fn check_decisions() {
    let found = Place::empty().json(&["check", "--decisions", "--only", "nothing, else escalate"]);
    same_shape("check --decisions", &documented("check --decisions --json"), &found);
    let [found] = found.as_array().unwrap().as_slice() else { panic!("one declaration was asked for") };
    assert_eq!((&found["sound"], &found["maximal"]), (&true.into(), &true.into()));
    let page = documented("check --decisions --json");
    for field in ["declaration", "instruments", "on_unknown", "sound", "maximal", "worlds", "states"] {
        same(&page[0][field], &found[field]);
    }
    let shown = &page[0]["classes"][0];
    let open = member(&found["classes"], shown, &["sees"]);
    same_shape("class", shown, open);
    for field in ["sees", "decides", "verdict", "why", "pair"] {
        same(&shown[field], &open[field]);
    }
    assert_eq!(open["pair"].as_array().unwrap().len(), 2);
    let again = member(&open["decisions"], &shown["decisions"][0], &["decision"]);
    same(&shown["decisions"][0], again);
    assert_eq!((&again["safe"], &again["breaks"]), (&false.into(), &"effect_at_most_once".into()));
    assert!(again["trace"].as_array().unwrap().len() > 8);
}

#[test]
fn check_coverage() {
    let rows = Place::empty().json(&["check", "--coverage"]);
    let rows = rows.as_array().unwrap();
    let [happens, absent] = documented("check --coverage --json").as_array().unwrap().clone().try_into().unwrap();
    for example in [&happens, &absent] {
        same(example, member(&Value::from(rows.clone()), example, &["design", "step"]));
    }
    for row in rows {
        same_shape("check --coverage", if row["absent"].is_null() { &happens } else { &absent }, row);
        assert_eq!(row["count"].as_u64().unwrap() > 0, row["absent"].is_null(), "{row}");
    }
    for design in ["commit-running", "single-transaction", "lease"] {
        assert_eq!(rows.iter().filter(|row| row["design"] == design).count(), rows.len() / 3, "{design}");
    }
}

#[test]
fn replay_on_both_rungs() {
    let place = Place::empty();
    let story = repository("scenarios/stories/crash-around-the-call.toml");
    for (nth, (rung, seed)) in [("sim", Value::from(7)), ("model", Value::Null)].into_iter().enumerate() {
        let mut args = vec!["replay", &story, "--on", rung, "--trace", "trace.jsonl"];
        if rung == "sim" {
            args.extend(["--seed", "7"]);
        }
        let told = place.json(&args);
        let shown = documented_nth("replay --json", nth);
        same(&shown, &told);
        assert_eq!((&told["scenario"], &told["rung"]), (&"crash-around-the-call".into(), &rung.into()));
        assert_eq!(told["seed"], seed);
        assert!(told["verdict"].is_string() && told["events"].as_u64().unwrap() > 5);
        let trace = std::fs::read_to_string(place.path().join("trace.jsonl")).unwrap();
        assert!(trace.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
        assert!(trace.starts_with("{\"leaseproof_trace\":2,"));
        assert_eq!(trace.lines().count() - 1, told["events"].as_u64().unwrap() as usize);
        assert_eq!(told["trace_sha256"], sha256(&trace));
        // And in another process.
        assert_eq!(place.json(&args), told);
    }
}

fn sha256(text: &str) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn replay_of_many_seeds_counts_verdicts() {
    let story = repository("scenarios/stories/crash-around-the-call.toml");
    let told = Place::empty().json(&["replay", &story, "--seed", "5", "--seeds", "10"]);
    let counts = told["verdicts"].as_object().unwrap();
    assert_eq!(counts.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 10);
    assert!((5..15).contains(&told["seed"].as_u64().unwrap()));
}

#[test]
fn queue_commands() {
    let place = Place::empty();
    let told = |heading: &str, printed: &Value| same(&documented(heading), printed);
    told("queue migrate --json", &place.json(&["queue", "migrate"]));
    told("queue enqueue --json", &place.json(&["queue", "enqueue", "--payload", r#"{"command":"exit 65"}"#]));
    let worked = place.run(&["queue", "work", "--until-empty", "--json"]);
    assert_eq!(worked.status.code(), Some(1));
    told("queue work --json", &serde_json::from_slice(&worked.stdout).unwrap());
    same_shape("queue sweep", &documented("queue sweep --json"), &place.json(&["queue", "sweep"]));
    told("queue list --json", &place.json(&["queue", "list"]));
    let (page, shown) = (documented("queue show --json"), place.json(&["queue", "show", "1"]));
    same_shape("queue show", &page, &shown);
    same(&page["task"], &shown["task"]);
    same(&page["record"][0], member(&shown["record"], &page["record"][0], &["verb"]));
    let resolve = ["queue", "resolve", "1", "--fail", "--by", "me", "--why", "test"];
    told("queue resolve --json", &place.json(&resolve));
}
