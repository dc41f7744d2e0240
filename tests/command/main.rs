//! Goal: what the command promises to people and programs. Method: the built binary, in an empty folder of its own.

mod bad_input;
mod json;
mod pictures;
mod queue;
mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// The command in an empty folder.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn empty() -> Place {
        Place { folder: TempDir::new().unwrap() }
    }

    /// A place with a migrated queue in it.
    pub fn with_queue() -> Place {
        let place = Place::empty();
        place.good(&["queue", "migrate"]);
        place
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Every file there, with its content.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = std::fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_file()).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = assert_cmd::cargo::cargo_bin_cmd!("leaseproof");
        command.args(args).current_dir(self.path()).env_remove("LEASEPROOF_URL");
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Standard output of a command that must go well.
    pub fn good(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// The JSON that a command prints that must go well.
    pub fn json(&self, args: &[&str]) -> Value {
        let out = self.good(&[args, &["--json"]].concat());
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}: {out}"))
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A story or another file of the repository.
pub fn repository(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).display().to_string()
}
