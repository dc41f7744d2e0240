//! Goal: what the command promises to people and programs. Method: the built binary, in an empty folder of its own.

mod bad_input;
mod compare;
mod explore;
mod json;
mod output;
mod pictures;
mod queue;
mod signals;
mod sweep;
mod theory;
mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};

use assert_cmd::Command;
use serde_json::Value;

/// The command in an empty folder, which is gone with it.
pub struct Place {
    folder: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

impl Place {
    pub fn empty() -> Place {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        let name = format!("place-{}-{}", std::process::id(), PLACES.fetch_add(1, Ordering::Relaxed));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // What an earlier process with this id may have left when it was killed.
        std::fs::remove_dir_all(&folder).ok();
        std::fs::create_dir_all(&folder).unwrap();
        Place { folder }
    }

    /// A place with a migrated queue in it.
    pub fn with_queue() -> Place {
        let place = Place::empty();
        place.good(&["queue", "migrate"]);
        place
    }

    pub fn path(&self) -> &Path {
        &self.folder
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

    /// Works until every task is resolved; whether all of them are in SUCCESS, as the exit code says.
    pub fn work(&self) -> bool {
        let output = self.run(&["queue", "work", "--until-empty", "--poll", "20ms"]);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{code:?}: {}", text(&output.stderr));
        code == Some(0)
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
