//! Goal: bad input is one clear paragraph with place and remedy, exit code 2, and nothing changed.

use super::{Place, repository, text};

/// Runs a command that must be refused; all of `says` is in the one paragraph.
pub fn refused(place: &Place, args: &[&str], says: &[&str]) {
    let before = place.files();
    let output = place.run(args);
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {complaint}");
    assert_eq!(text(&output.stdout), "", "{args:?}");
    assert_eq!(complaint.trim().lines().count(), 1, "{args:?}: {complaint}");
    for part in says {
        assert!(complaint.contains(part), "{args:?}: {part:?} is missing in: {complaint}");
    }
    assert_eq!(place.files(), before, "{args:?}");
}

/// The same for what the argument parser refuses: it adds a hint in a second paragraph.
pub fn refused_by_parser(place: &Place, args: &[&str], says: &[&str]) {
    let before = place.files();
    let output = place.run(args);
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {complaint}");
    for part in says {
        assert!(complaint.contains(part), "{args:?}: {part:?} is missing in: {complaint}");
    }
    assert_eq!(place.files(), before, "{args:?}");
}

/// A shipped story with one line changed, and the number of the last line of the change.
fn changed(from: &str, to: &str) -> (String, usize) {
    let good = std::fs::read_to_string(repository("scenarios/stories/batch-oom.toml")).unwrap();
    let (before, after) = good.split_once(from).unwrap();
    (format!("{before}{to}{after}"), format!("{before}{to}").lines().count())
}

#[test]
fn a_story_that_does_not_fit_is_refused_with_line_field_and_what_is_accepted() {
    let cases: [(&str, &str, &[&str]); 9] = [
        ("do = \"crash\"", "do = \"crash\"\nfoo = 1", &["foo", "expected one of"]),
        ("lease = \"30s\"", "lease = \"-30s\"", &["-30s", "not negative"]),
        ("lease = \"30s\"", "lease = \"25h\"", &["policy.lease", "25h", "0s to 24h"]),
        ("lease = \"30s\"", "lease = 30", &["policy.lease", "duration"]),
        ("after = \"12s\"", "after = \"24h\"", &["faults[0].after", "horizon"]),
        ("after = \"12s\"", "at = \"nowhere.reply\"", &["nowhere", "claim"]),
        ("on = \"w1\"", "on = \"w9\"", &["w9", "w1", "w2"]),
        ("verdicts = [\"auto-recovered\"]", "verdicts = [\"fine\"]", &["fine", "auto-recovered"]),
        ("version = 1", "version = 9", &["version"]),
    ];
    for (from, to, says) in cases {
        let place = Place::empty();
        let (story, line) = changed(from, to);
        place.write("story.toml", &story);
        let line = format!("story.toml:{line}: ");
        let says = [&[line.as_str()], says].concat();
        for rung in ["sim", "model"] {
            refused(&place, &["replay", "story.toml", "--on", rung, "--trace", "trace.jsonl"], &says);
        }
    }
}

#[test]
fn a_file_that_can_not_be_read_is_named() {
    let place = Place::empty();
    refused(&place, &["replay", "missing.toml"], &["missing.toml", "can not be read", "scenarios/README.md"]);
    refused(&place, &["replay", "."], &["can not be read"]);
    place.write("noise.toml", "\u{1}\u{2}");
    refused(&place, &["replay", "noise.toml"], &["noise.toml:1"]);
}

#[test]
fn a_trace_that_can_not_be_written_is_named() {
    let place = Place::empty();
    let story = repository("scenarios/stories/overrun.toml");
    refused(&place, &["replay", &story, "--trace", "no/such/folder.jsonl"], &["--trace no/such/folder.jsonl"]);
    refused(&place, &["replay", &story, "--trace", "."], &["is a folder"]);
    refused(&place, &["replay", &story, "--trace", "/dev/full"], &["--trace /dev/full: can not be written"]);
}

#[test]
fn a_trace_takes_the_place_of_a_trace_and_of_nothing_else() {
    let place = Place::empty();
    let story = std::fs::read_to_string(repository("scenarios/stories/overrun.toml")).unwrap();
    place.write("story.toml", &story);
    std::os::unix::fs::symlink("story.toml", place.path().join("link.jsonl")).unwrap();
    place.write("notes.txt", "mine\n");
    for rung in ["sim", "model"] {
        for there in ["story.toml", "./story.toml", "link.jsonl", "notes.txt"] {
            let says = [there, "is no trace", "nothing was written"];
            refused(&place, &["replay", "story.toml", "--on", rung, "--trace", there], &says);
        }
    }
    place.write("empty.jsonl", "");
    std::os::unix::fs::symlink("empty.jsonl", place.path().join("good-link.jsonl")).unwrap();
    for rung in ["sim", "model", "sim"] {
        place.good(&["replay", "story.toml", "--on", rung, "--trace", "good-link.jsonl"]);
        place.good(&["replay", "story.toml", "--on", rung, "--trace", "/dev/null"]);
    }
    assert!(place.path().join("good-link.jsonl").is_symlink());
    let names: Vec<_> = place.files().into_keys().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["empty.jsonl", "good-link.jsonl", "link.jsonl", "notes.txt", "story.toml"]);
    assert!(std::fs::read_to_string(place.path().join("empty.jsonl")).unwrap().lines().count() > 5);
}

#[test]
fn the_model_has_no_seeds() {
    let place = Place::empty();
    let story = repository("scenarios/stories/overrun.toml");
    for seeds in [["--seed", "3"], ["--seeds", "3"]] {
        let args = [&["replay", &story, "--on", "model"], &seeds[..]].concat();
        refused(&place, &args, &["all interleavings", "leave them out"]);
    }
}

#[test]
fn names_that_do_not_exist_are_answered_with_those_that_do() {
    let place = Place::empty();
    refused(&place, &["matrix", "--only", "nonesuch"], &["nonesuch", "batch-oom"]);
    refused_by_parser(&place, &["check", "--without", "luck"], &["luck", "fence_complete", "overrun_rule"]);
    refused_by_parser(&place, &["queue", "list", "--status", "LOST"], &["LOST", "WAIT_MANUAL"]);
    refused_by_parser(&place, &["queue", "enqueue", "--lease", "-1s"], &["-1s"]);
    refused_by_parser(&place, &["queue", "work", "--poll", "soon"], &["soon", "250ms"]);
}

#[test]
fn a_url_of_an_unknown_scheme_or_without_a_file_is_refused() {
    let place = Place::empty();
    let scheme = ["redis", "sqlite:PATH", "postgres://USER@HOST/DATABASE", "mysql://USER@HOST/DATABASE"];
    refused(&place, &["queue", "--url", "redis://localhost/x", "migrate"], &scheme);
    refused(
        &place,
        &["queue", "--url", "mysql://me@localhost", "migrate"],
        &["names no database", "mysql://USER@HOST"],
    );
    refused(&place, &["queue", "--url", "mariadb://db/x?sslmod=off", "list"], &["sslmod", "accepted are ssl-mode"]);
    refused(&place, &["queue", "--url", "leaseproof.db", "list"], &["no scheme", "sqlite:PATH"]);
    refused(&place, &["queue", "--url", "sqlite:", "migrate"], &["names no file", "sqlite:leaseproof.db"]);
    refused(&place, &["queue", "--url", "sqlite:no/such/folder/q.db", "migrate"], &["no/such/folder/q.db", "folder"]);
    place.write("noise.db", &"this is no database ".repeat(100));
    for command in ["migrate", "list"] {
        refused(&place, &["queue", "--url", "sqlite:noise.db", command], &["sqlite:noise.db", "not a database"]);
    }
}

#[test]
fn a_password_in_a_url_is_not_told() {
    let place = Place::empty();
    for scheme in ["redis", "mysql"] {
        let url = format!("{scheme}://me:secret@localhost/?x=secret");
        let output = place.run(&["queue", "--url", &url, "migrate"]);
        assert_eq!(output.status.code(), Some(2), "{scheme}");
        assert!(!text(&output.stderr).contains("secret"));
    }
}

#[test]
fn a_database_without_tables_is_left_alone() {
    let place = Place::empty();
    let payload = r#"{"command":"true"}"#;
    let commands: [&[&str]; 6] = [
        &["queue", "enqueue", "--payload", payload],
        &["queue", "work", "--until-empty"],
        &["queue", "sweep"],
        &["queue", "list"],
        &["queue", "show", "1"],
        &["queue", "resolve", "1", "--fail", "--by", "me", "--why", "test"],
    ];
    for command in commands {
        refused(&place, command, &["sqlite:leaseproof.db", "no leaseproof tables", "migrate"]);
    }
    assert!(place.files().is_empty());
}

#[test]
fn a_second_worker_with_the_same_boot_id_is_refused() {
    let place = Place::with_queue();
    let enqueue = ["queue", "enqueue", "--payload", r#"{"command":"true"}"#];
    place.good(&enqueue);
    place.good(&["queue", "work", "--until-empty", "--boot-id", "alpha"]);
    place.good(&enqueue);
    let output = place.run(&["queue", "work", "--until-empty", "--boot-id", "alpha"]);
    assert_eq!(output.status.code(), Some(2));
    let complaint = text(&output.stderr);
    for part in ["\"alpha\"", "pid", "leave it out"] {
        assert!(complaint.contains(part), "{complaint}");
    }
    assert_eq!(place.json(&["queue", "list"])[1]["status"], "PENDING");
}

#[test]
fn a_payload_or_policy_that_can_not_work_is_refused() {
    let place = Place::with_queue();
    let payload = r#"{"command":"true"}"#;
    let nul = r#"{"command":"echo \u0000"}"#;
    let cases: [(&[&str], &[&str]); 8] = [
        (&["--payload", "nonsense"], &["--payload", "not JSON"]),
        (&["--payload", nul], &["--payload: command", "NUL"]),
        (&["--payload", r#"{"command":"true","timeout_ms":0}"#], &["timeout_ms", "longer than 0"]),
        (&["--payload", r#"{"cmd":"true"}"#], &["--payload", "cmd", "command", "timeout_ms"]),
        (&["--payload", "{}"], &["command"]),
        (&["--payload", payload, "--heartbeat", "29s"], &["heartbeat", "lease"]),
        (&["--payload", payload, "--max-attempts", "0"], &["max_attempts", "at least 1"]),
        (&["--payload", payload, "--kind", ""], &["kind", "empty"]),
    ];
    for (args, says) in cases {
        let output = place.run(&[&["queue", "enqueue"], args].concat());
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {complaint}");
        assert!(says.iter().all(|part| complaint.contains(part)), "{args:?}: {complaint}");
    }
    assert_eq!(place.json(&["queue", "list"]), serde_json::json!([]));
}

/// A shell command of so many bytes, as a payload.
fn long(bytes: usize) -> String {
    serde_json::json!({"command": format!("true {}", "x".repeat(bytes - 5))}).to_string()
}

#[test]
fn a_command_that_no_program_can_be_given_is_refused_and_the_longest_one_runs() {
    let place = Place::with_queue();
    let enqueue = |payload: String, code: i32, says: &str| {
        let mut command = place.command(&["queue", "enqueue", "--payload", "-"]);
        let output = command.write_stdin(payload).output().unwrap();
        let complaint = text(&output.stderr);
        assert!(output.status.code() == Some(code) && complaint.contains(says), "{complaint}");
    };
    enqueue(long(131_072), 2, "131072 bytes");
    enqueue(format!("{}1", " ".repeat(17 << 20)), 2, "longer than 16 MiB");
    enqueue(long(131_071), 0, "");
    place.good(&["queue", "work", "--until-empty"]);
    assert_eq!(place.json(&["queue", "show", "1"])["task"]["status"], "SUCCESS");

    // And for a person who decides.
    place.good(&["queue", "enqueue", "--payload", r#"{"command":"exit 65"}"#]);
    place.run(&["queue", "work", "--until-empty"]);
    place.write("long.json", &long(131_072));
    place.write("nul.json", r#"{"command":"\u0000"}"#);
    place.write("other.json", "{}");
    let before = place.json(&["queue", "show", "2"]);
    for (file, says) in
        [("long.json", "131072 bytes"), ("nul.json", "NUL"), ("other.json", "command"), ("/dev/zero", "16 MiB")]
    {
        let args = ["queue", "resolve", "2", "--rerun", "--input", file, "--by", "me", "--why", "test"];
        let output = place.run(&args);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{file}: {complaint}");
        assert!(complaint.contains(&format!("--input {file}: ")) && complaint.contains(says), "{complaint}");
    }
    assert_eq!(place.json(&["queue", "show", "2"]), before);
}

#[test]
fn a_decision_that_does_not_apply_is_refused() {
    let place = Place::with_queue();
    let by = ["--by", "alice", "--why", "looked at it"];
    place.good(&["queue", "enqueue", "--payload", r#"{"command":"true"}"#]);
    let cases: [(&[&str], &[&str]); 5] = [
        (&["9", "--fail"], &["no task 9"]),
        (&["1", "--fail"], &["task 1", "PENDING", "WAIT_MANUAL"]),
        (&["1", "--rerun", "--effect", "charge"], &["charge", "KEY=done or KEY=not-done"]),
        (&["1", "--rerun", "--effect", "charge=maybe"], &["charge=maybe", "KEY=done or KEY=not-done"]),
        (&["1", "--rerun", "--input", "missing.json"], &["--input missing.json"]),
    ];
    for (args, says) in cases {
        let output = place.run(&[&["queue", "resolve"], args, &by].concat());
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {complaint}");
        assert!(says.iter().all(|part| complaint.contains(part)), "{args:?}: {complaint}");
    }
    let task = &place.json(&["queue", "show", "1"])["task"];
    assert_eq!((&task["status"], &task["epoch"]), (&"PENDING".into(), &0.into()));
}

#[test]
fn a_server_that_is_away_is_no_bad_input() {
    let place = Place::empty();
    for scheme in ["postgres", "mysql"] {
        let output = place.run(&["queue", "--url", &format!("{scheme}://me:secret@127.0.0.1:1/x"), "list"]);
        assert_eq!(output.status.code(), Some(3));
        let complaint = text(&output.stderr);
        assert!(complaint.contains("Is the server up") && !complaint.contains("secret"), "{complaint}");
    }
}
