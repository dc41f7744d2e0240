//! How one talks to the third party: a length and a JSON object, there and back, one exchange a connection.

use std::io;

use leaseproof_rules::Epoch;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::net::Stream;

/// Longer than any message.
const LONGEST: u32 = 64 * 1024;

/// What is asked of the third party.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Do it.
    Call { task: i64, effect: String, idempotency_key: String, token: Epoch },
    /// Was it done?
    Ask { task: i64, effect: String, token: Option<Epoch> },
}

/// What it answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Response {
    /// It is done.
    Done,
    /// The token is older than this one.
    Refused(Epoch),
    /// It was done, or was not.
    Status(bool),
    /// It does not answer such questions.
    Unsupported,
}

/// Writes a message.
pub(super) async fn send(stream: &mut Stream, message: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(message).map_err(io::Error::other)?;
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend(body);
    stream.write_all(&frame).await
}

/// Reads a message.
pub(super) async fn receive<T: DeserializeOwned>(stream: &mut Stream) -> io::Result<T> {
    let length = stream.read_u32().await?;
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {length} bytes")));
    }
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body).await?;
    serde_json::from_slice(&body).map_err(io::Error::other)
}
