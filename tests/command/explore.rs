//! Goal: `explore` serves a world that a person can read, where only this machine reaches it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::Place;
use super::bad_input::{refused, refused_by_parser};
use super::json::{documented, same_shape};

/// The served page, ended with the test.
struct Explorer {
    process: Child,
    /// What it printed when it began.
    told: Value,
}

impl Explorer {
    fn start(place: &Place, args: &[&str]) -> Explorer {
        let program = place.command(&[]).get_program().to_owned();
        let mut command = Command::new(program);
        command.args(["explore", "--json", "--address", "127.0.0.1:0"]).args(args).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut text = String::new();
        for line in BufReader::new(process.stdout.as_mut().unwrap()).lines() {
            text += &line.unwrap();
            if text.ends_with('}') {
                break;
            }
        }
        Explorer { process, told: serde_json::from_str(&text).unwrap() }
    }

    fn get(&self, path: &str) -> Value {
        let address = self.told["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/');
        // The port is printed just before it is listened on.
        let mut stream = (0..100)
            .find_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                TcpStream::connect(address).ok()
            })
            .expect("the page is served within two seconds");
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{path}: {head}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
    }
}

impl Drop for Explorer {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn texts<'a>(views: &'a Value, field: &str) -> Vec<&'a str> {
    views.as_array().unwrap().iter().map(|view| view[field].as_str().unwrap()).collect()
}

#[test]
fn states_and_steps_are_told_in_words() {
    let explorer = Explorer::start(&Place::empty(), &["--without", "fence_complete"]);
    same_shape("explore", &documented("explore --json"), &explorer.told);
    assert_eq!(explorer.told["without"], "fence_complete");

    let start = explorer.get("/.states/");
    assert_eq!(texts(&start, "state"), ["task t1: PENDING epoch 0\nexecutor w1: idle\nexecutor w2: idle"]);
    let title = "1 task × 2 executors, without fence_complete";
    assert!(texts(&start, "svg")[0].contains(title), "{start}");

    let first = explorer.get("/.states/0");
    assert_eq!(
        texts(&first, "action"),
        ["w1: reads t1 as a candidate", "w2: reads t1 as a candidate", "world: no more faults"]
    );
    assert_eq!(texts(&first, "outcome")[0], "executor w1: Claiming t1 epoch 0");
}

#[test]
fn the_worlds_are_listed_and_found_by_number_or_name() {
    let place = Place::empty();
    let listed = place.json(&["explore", "--list"]);
    same_shape("explore --list", &documented("explore --list --json"), &listed);
    let last = listed.as_array().unwrap().last().unwrap();
    let (number, name) = (last["number"].to_string(), last["world"].as_str().unwrap());
    for world in [number.as_str(), name] {
        let explorer = Explorer::start(&place, &["--world", world]);
        assert_eq!((&explorer.told["world"], &explorer.told["without"]), (&last["world"], &Value::Null));
    }
}

#[test]
fn what_can_not_be_served_is_refused() {
    let place = Place::empty();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&place, &["explore", "--address", &address], &[&address, "in use", "another"]);
    refused(&place, &["explore", "--address", "0.0.0.0:0"], &["0.0.0.0", "other machines", "--allow-remote"]);
    refused(&place, &["explore", "--address", "3000"], &["--address 3000", "HOST:PORT"]);
    refused(&place, &["explore", "--world", "0"], &["\"0\"", "worlds 1 to", "--list"]);
    refused(&place, &["explore", "--world", "moon"], &["moon", "no world", "--list"]);
    refused(&place, &["explore", "--world", "task"], &["task", "worlds have this", "--list"]);
    refused_by_parser(&place, &["explore", "--without", "luck"], &["luck", "fence_complete"]);
}
