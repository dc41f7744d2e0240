//! The file that `--trace` names: a trace may take the place of a trace, and of nothing else.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// How every trace begins.
pub const BEGINS: &str = "{\"leaseproof_trace\":";

fn refuse(path: &Path, why: &str) -> Failure {
    Failure::BadInput(format!("--trace {}: {why}", path.display()))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    refuse(path, &format!("can not be written: {error}"))
}

/// What is there; `None` if nothing is.
fn found(path: &Path) -> Result<Option<Metadata>, Failure> {
    match fs::metadata(path) {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unwritable(path, &error)),
    }
}

/// Whether a trace may be written there. An empty file is nobody's; a pipe or a device keeps nothing that could be lost.
///
/// # Errors
/// [`Failure::BadInput`]: there is something else, e.g. the story itself.
pub fn check(path: &Path) -> Result<(), Failure> {
    match found(path)? {
        Some(there) if there.is_dir() => Err(refuse(path, "is a folder; name a file")),
        Some(there) if there.is_file() && there.len() > 0 => {
            let mut begin = Vec::new();
            File::open(path)
                .and_then(|file| file.take(BEGINS.len() as u64).read_to_end(&mut begin))
                .map_err(|error| unwritable(path, &error))?;
            match begin == BEGINS.as_bytes() {
                true => Ok(()),
                false => {
                    Err(refuse(path, "is there and is no trace; nothing was written. Name another file, or remove it"))
                }
            }
        }
        Some(_) => Ok(()),
        None => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            match fs::metadata(folder) {
                Ok(there) if there.is_dir() => Ok(()),
                Ok(_) => Err(refuse(path, "can not be written: its folder is a file")),
                Err(error) => Err(unwritable(path, &error)),
            }
        }
    }
}

/// Writes the trace: all of it, or nothing.
///
/// # Errors
/// [`Failure::BadInput`]: it can not be written there.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    check(path)?;
    let written = match found(path)? {
        Some(there) if !there.is_file() => {
            fs::OpenOptions::new().write(true).open(path).and_then(|file| put(file, text))
        }
        // What a symbolic link points to is replaced, not the link.
        Some(_) => fs::canonicalize(path).and_then(|path| replace(&path, text)),
        None => replace(path, text),
    };
    written.map_err(|error| unwritable(path, &error))
}

fn put(mut file: File, text: &str) -> io::Result<()> {
    match file.write_all(text.as_bytes()) {
        // A reader that has had enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Through a file beside it, so that nobody ever sees half a trace.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part: PathBuf = path.with_file_name(name);
    let written = File::create_new(&part).and_then(|file| put(file, text)).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // If it is not there, so much the better.
        let _ = fs::remove_file(&part);
    }
    written
}
