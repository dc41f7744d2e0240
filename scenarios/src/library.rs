//! The stories that ship with leaseproof, and reading of others.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use include_dir::{Dir, include_dir};

use crate::check;
use crate::error::StoryError;
use crate::story::Story;

static STORIES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/stories");
static DESIGNS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/designs");
static ABLATIONS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/ablations");
static RECORDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/recorded");

/// Reads a story from text. `file` is what errors call it; the story's name is the file's stem.
///
/// # Errors
/// The first thing wrong with it, with its place.
pub fn parse(file: &str, text: &str) -> Result<Story, StoryError> {
    let name = Path::new(file).file_stem().map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned());
    check::parse(&name, file, text)
}

/// Reads a story from a file.
///
/// # Errors
/// An unreadable file, or the first thing wrong with it.
pub fn load(path: &Path) -> Result<Story, StoryError> {
    let file = path.display().to_string();
    match read(path) {
        Ok(text) => parse(&file, &text),
        Err(why) => Err(StoryError {
            file,
            line: None,
            field: String::new(),
            why: format!("can not be read: {why}; a story is a UTF-8 TOML file, see scenarios/README.md"),
        }),
    }
}

/// Bytes of the longest story. More is not read: a device never ends.
const LONGEST: u64 = 1 << 20;

fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("it is longer than {} MiB", LONGEST >> 20));
    }
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// The stories of the matrix, by name.
///
/// # Errors
/// None in a released build: a test reads them all.
pub fn stories() -> Result<Vec<Story>, StoryError> {
    shipped("stories", &STORIES)
}

/// The stories that show what each guard is for, by name: each runs without one guard.
///
/// # Errors
/// None in a released build: a test reads them all.
pub fn ablations() -> Result<Vec<Story>, StoryError> {
    shipped("ablations", &ABLATIONS)
}

/// The stories that sweeps have found and shrunk, by name: each names the seed under which it is told.
///
/// # Errors
/// None in a released build: a test reads them all.
pub fn recorded() -> Result<Vec<Story>, StoryError> {
    shipped("recorded", &RECORDED)
}

/// The stories by which the three designs are compared (S4), by name. What they expect is of the lease.
///
/// # Errors
/// None in a released build: a test reads them all.
pub fn designs() -> Result<Vec<Story>, StoryError> {
    shipped("designs", &DESIGNS)
}

fn shipped(folder: &str, dir: &Dir<'_>) -> Result<Vec<Story>, StoryError> {
    let mut out = Vec::new();
    for file in dir.files().filter(|file| file.path().extension().is_some_and(|end| end == "toml")) {
        let name = format!("scenarios/{folder}/{}", file.path().display());
        out.push(parse(&name, file.contents_utf8().unwrap_or_default())?);
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}
