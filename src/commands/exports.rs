//! Traces in other programs' formats, and traces from files.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use leaseproof_scenarios::{Story, load};
use leaseproof_sim::export;
use leaseproof_sim::trace::{Header, Line, Reader};
use leaseproof_sim::validate::{FileError, validate_file};
use serde::Serialize;

use crate::cli::ValidateArgs;
use crate::failure::Failure;
use crate::style::{Tone, paint, print, print_json};

/// How the exports begin: one may take the place of another of its kind, and of nothing else.
const PERFETTO: &str = "{\"displayTimeUnit\":";
const SHIVIZ: &str = "(?<host>";

/// Whether an export may be written there.
fn check(flag: &str, path: &Path, begins: &str) -> Result<(), Failure> {
    let refuse = |why: &str| Failure::BadInput(format!("{flag} {}: {why}", path.display()));
    if path.is_dir() {
        return Err(refuse("is a folder; name a file"));
    }
    let mut begin = Vec::new();
    let there = path.is_file()
        && File::open(path)
            .and_then(|file| file.take(begins.len() as u64).read_to_end(&mut begin))
            .map_err(|error| refuse(&format!("can not be read: {error}")))?
            > 0;
    match !there || begin == begins.as_bytes() {
        true => Ok(()),
        false => Err(refuse("is there and is no such export; nothing was written. Name another file, or remove it")),
    }
}

/// Writes the exports that are wanted.
pub fn write(perfetto: Option<&Path>, shiviz: Option<&Path>, header: &Header, lines: &[Line]) -> Result<(), Failure> {
    type Export = fn(&Header, &[Line]) -> String;
    let exports: [(&str, Option<&Path>, &str, Export); 2] =
        [("--perfetto", perfetto, PERFETTO, export::perfetto), ("--shiviz", shiviz, SHIVIZ, export::shiviz)];
    let wanted = exports.into_iter().filter_map(|(flag, path, begins, export)| Some((flag, path?, begins, export)));
    let wanted: Vec<_> = wanted.collect();
    for (flag, path, begins, _) in &wanted {
        check(flag, path, begins)?;
    }
    for (flag, path, _, export) in wanted {
        std::fs::write(path, export(header, lines))
            .map_err(|error| Failure::BadInput(format!("{flag} {}: can not be written: {error}", path.display())))?;
    }
    Ok(())
}

/// What `validate --json` prints. Fields are only ever added, at the end.
#[derive(Serialize)]
struct Validated<'a> {
    trace: String,
    scenario: &'a str,
    seed: u64,
    holds: bool,
    events: Option<usize>,
    divergence: Option<Divergence<'a>>,
}

#[derive(Serialize)]
struct Divergence<'a> {
    line: usize,
    event: &'a str,
    why: &'a str,
    state: &'a str,
    allowed: &'a [String],
}

/// `leaseproof validate`: whether a trace from a file is a path of the rules.
pub fn validate(args: &ValidateArgs) -> Result<(), Failure> {
    let story = load(&args.story)?;
    let refuse = |why: String| Failure::BadInput(format!("{}: {why}", args.trace.display()));
    let open =
        || File::open(&args.trace).map(BufReader::new).map_err(|error| refuse(format!("can not be read: {error}")));
    let seed = Reader::new(open()?).map_err(|error| refuse(error.to_string()))?.header().seed;
    let found = validate_file(&story, open()?);
    let (events, divergence) = match found {
        Ok(events) => (Some(events), None),
        Err(FileError::Divergence(divergence)) => (None, Some(divergence)),
        Err(error) => return Err(refuse(error.to_string())),
    };
    if events.is_some() && (args.perfetto.is_some() || args.shiviz.is_some()) {
        let (header, lines) = read(&args.trace).map_err(refuse)?;
        write(args.perfetto.as_deref(), args.shiviz.as_deref(), &header, &lines)?;
    }
    tell(args, &story, seed, events, divergence.as_ref())?;
    if divergence.is_none() { Ok(()) } else { Err(Failure::Violated) }
}

fn read(path: &Path) -> Result<(Header, Vec<Line>), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut reader = Reader::new(BufReader::new(file)).map_err(|error| error.to_string())?;
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line().map_err(|error| error.to_string())? {
        lines.push(line);
    }
    Ok((reader.header().clone(), lines))
}

fn tell(
    args: &ValidateArgs,
    story: &Story,
    seed: u64,
    events: Option<usize>,
    divergence: Option<&leaseproof_sim::validate::Divergence>,
) -> Result<(), Failure> {
    if args.json {
        let divergence = divergence.map(|found| Divergence {
            line: found.line,
            event: &found.event,
            why: &found.why,
            state: &found.state,
            allowed: &found.allowed,
        });
        let trace = args.trace.display().to_string();
        let holds = divergence.is_none();
        return print_json(&Validated { trace, scenario: &story.name, seed, holds, events, divergence });
    }
    let trace = args.trace.display();
    match divergence {
        None => {
            let events = events.unwrap_or_default();
            let holds = paint(Tone::Good, "a path of the rules");
            print(&format!("{trace}: {holds}: {events} events of {}, seed {seed}\n", story.name))
        }
        Some(found) => print(&format!(
            "{trace}:{}: {}\n  event    {}\n  because  {}\n  state    {}\n  allowed  {}\n",
            found.line,
            paint(Tone::Bad, "no step of the rules"),
            found.event,
            found.why,
            found.state,
            found.allowed.join("; ")
        )),
    }
}
