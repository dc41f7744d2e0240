//! SPIN, on a model written by hand in Promela, finds as many states as this crate's checker.

use std::io::Write;
use std::process::Command;

use leaseproof_model::free::LeaseModel;
use leaseproof_model::graph::{Limits, explore};
use leaseproof_model::world::World;

fn spin_is_there() -> bool {
    let runs = |program: &str, arg| Command::new(program).arg(arg).output().is_ok();
    runs("spin", "-V") && runs("gcc", "--version")
}

/// Set where CI provides every tool and server: there nothing may be skipped.
const REQUIRE: &str = "LEASEPROOF_REQUIRE_SERVERS";

#[test]
fn spin_stores_as_many_states() {
    if !spin_is_there() {
        let required = std::env::var(REQUIRE).is_ok_and(|value| value == "1");
        assert!(!required, "{REQUIRE}=1, but `spin` and `gcc` are not both in PATH: apt-get install spin gcc");
        // Written directly: the harness swallows what a passing test prints.
        writeln!(std::io::stderr(), "skipped: no SPIN cross-check (apt-get install spin gcc)").unwrap();
        return;
    }
    // The last configuration has budgets other than the file's own.
    let cases = [
        (World::lease(1, 2).unwrap().errors().reruns(1), vec![]),
        (
            World::lease(1, 2).unwrap().errors().reruns(0).budgets(3, 2),
            vec!["-DMAX_ATTEMPTS=3", "-DMAX_INTERRUPTIONS=2", "-DMAX_RERUNS=0"],
        ),
    ];
    for (world, defines) in cases {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/spin/run.sh");
        let run = Command::new("sh").arg(script).args(&defines).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let spin: usize = String::from_utf8_lossy(&run.stdout).trim().parse().unwrap();
        let model = LeaseModel::new(world);
        let ours = explore(&model, Limits::default()).unwrap().stats().states;
        println!("{}: SPIN {spin}, leaseproof {ours}", model.world.name);
        assert_eq!(spin, ours, "{} {defines:?}", model.world.name);
    }
}
