//! Whether the file of an SQLite database is still the one that was opened. Open connections go on writing to a file that was
//! deleted or replaced, and nobody else ever sees what they write.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::Error;

/// The file of one store, shared by its clones.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    opened: OnceLock<Opened>,
}

/// As it was when the first statement was about to be made.
#[derive(PartialEq, Eq, Debug)]
struct Opened {
    /// Absolute, wherever the process goes; a link may be made to name another file.
    path: PathBuf,
    id: Id,
}

/// What tells a file from another one under the same name.
#[cfg(unix)]
type Id = (u64, u64);
#[cfg(not(unix))]
type Id = ();

impl File {
    pub(super) fn new(path: &Path) -> File {
        File { path: path.to_owned(), opened: OnceLock::new() }
    }

    /// Says so if the file is another one than at the first call that found one.
    ///
    /// # Errors
    /// [`Error::FileChanged`].
    pub(super) fn check(&self) -> Result<(), Error> {
        let Some(opened) = self.opened.get() else {
            if let (Some(id), Ok(path)) = (id(&self.path), std::path::absolute(&self.path)) {
                let _ = self.opened.set(Opened { path, id });
            }
            return Ok(());
        };
        let what = match id(&opened.path) {
            Some(id) if id == opened.id => return Ok(()),
            Some(_) => "replaced",
            None => "deleted",
        };
        Err(Error::FileChanged { path: opened.path.display().to_string(), what })
    }
}

#[cfg(unix)]
fn id(path: &Path) -> Option<Id> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn id(path: &Path) -> Option<Id> {
    path.exists().then_some(())
}
