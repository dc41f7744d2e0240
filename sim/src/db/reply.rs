//! The answers of a session, as bytes.

use bytes::BytesMut;
use pgwire::messages::Message;
use pgwire::messages::data::{DataRow, FieldDescription, NoData, RowDescription};
use pgwire::messages::response::{CommandComplete, ErrorResponse};

use super::engine::{Column, Outcome};
use super::error::SqlError;
use super::sql::{self, Command};

/// Answers that wait to be sent.
#[derive(Default)]
pub(crate) struct Replies {
    pub bytes: BytesMut,
}

impl Replies {
    /// Appends a message.
    pub fn put(&mut self, message: &impl Message) {
        // a message longer than the protocol allows: the client is told instead of being sent half of it
        let length = self.bytes.len();
        if message.encode(&mut self.bytes).is_err() {
            self.bytes.truncate(length);
            self.error(&SqlError::new("54000", "the answer is longer than the protocol allows"));
        }
    }

    /// What the rows will look like; `binary` as in [`Engine::execute`](super::engine::Engine::execute).
    pub fn row_description(&mut self, columns: &[Column], binary: &[bool]) {
        if columns.is_empty() {
            return self.put(&NoData::new());
        }
        let fields = columns.iter().enumerate().map(|(index, column)| {
            let binary = binary.get(index).or(binary.last()).copied().unwrap_or(false);
            FieldDescription::new(column.name.clone(), 0, 0, column.oid, -1, -1, i16::from(binary))
        });
        self.put(&RowDescription::new(fields.collect()));
    }

    /// The rows and the end of an execution.
    pub fn result(&mut self, text: &str, command: Command, columns: usize, outcome: Outcome) {
        for row in outcome.rows {
            self.put(&DataRow::new(row, columns as i16));
        }
        let tag = match command {
            Command::Insert => format!("INSERT 0 {}", outcome.count),
            Command::Update => format!("UPDATE {}", outcome.count),
            Command::Delete => format!("DELETE {}", outcome.count),
            Command::Select => format!("SELECT {}", outcome.count),
            _ => sql::first_word(text),
        };
        self.complete(tag);
    }

    /// The end of a command.
    pub fn complete(&mut self, tag: impl Into<String>) {
        self.put(&CommandComplete::new(tag.into()));
    }

    /// An error.
    pub fn error(&mut self, error: &SqlError) {
        let severity = if error.fatal { "FATAL" } else { "ERROR" };
        let mut fields = vec![
            (b'S', severity.to_owned()),
            (b'V', severity.to_owned()),
            (b'C', error.code.to_owned()),
            (b'M', error.message.clone()),
        ];
        fields.extend(error.constraint.clone().map(|name| (b'n', name)));
        self.put(&ErrorResponse::new(fields));
    }
}
