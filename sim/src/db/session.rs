//! One session: the protocol's messages in, answers out.
//!
//! Every `Execute` is a transaction of its own unless a transaction block is open. PostgreSQL would make one of all
//! executions up to the next `Sync`; no client of this node sends more than one.

mod block;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::BytesMut;
use leaseproof_rules::Epoch;
use pgwire::messages::data::ParameterDescription;
use pgwire::messages::extendedquery::{Bind, BindComplete, CloseComplete, Describe, Parse, ParseComplete};
use pgwire::messages::response::{EmptyQueryResponse, ReadyForQuery, SslResponse, TransactionStatus};
use pgwire::messages::startup::{Authentication, BackendKeyData, ParameterStatus, SecretKey, Startup};
use pgwire::messages::{
    DecodeContext, PgWireFrontendMessage as Frontend, ProtocolVersion, SslNegotiationMetaMessage as Negotiation,
};
use rusqlite::types::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Database;
use super::engine::{Outcome, Prepared};
use super::error::SqlError;
use super::gate::{Answer, Arrival, Commit, Executed, Presented, Request};
use super::lock::{Hold, Transaction};
use super::reply::Replies;
use super::rows::Block;
use super::settings::Settings;
use super::sql::{self, Command};
use super::value::{self, oid};
use crate::net::Stream;

/// Why a session ends.
enum End {
    /// The client has gone, in whichever way.
    Gone,
    /// The client is to be told first.
    Told(SqlError),
}

impl From<std::io::Error> for End {
    fn from(_: std::io::Error) -> End {
        End::Gone
    }
}

/// A named or unnamed prepared statement.
struct Statement {
    prepared: Arc<Prepared>,
    oids: Vec<u32>,
}

/// A statement with its values.
struct Portal {
    prepared: Arc<Prepared>,
    values: Vec<Value>,
    binary: Vec<bool>,
}

/// How an execution ended from the client's point of view.
enum Ended {
    Answered(Outcome),
    /// The request or its answer is lost: the client hears nothing.
    Lost,
}

struct Session {
    database: Arc<Database>,
    peer: IpAddr,
    number: u64,
    settings: Settings,
    statements: HashMap<String, Statement>,
    portals: HashMap<String, Portal>,
    transaction: Option<Transaction>,
    replies: Replies,
    /// After an error: nothing but Sync is looked at.
    skipping: bool,
    /// After a loss: nothing is answered up to the next Sync.
    mute: bool,
}

/// Serves a connection until either side ends it.
pub(crate) async fn serve(database: Arc<Database>, mut stream: Stream, peer: IpAddr, number: u64) {
    let mut session = Session {
        database,
        peer,
        number,
        settings: Settings::default(),
        statements: HashMap::new(),
        portals: HashMap::new(),
        transaction: None,
        replies: Replies::default(),
        skipping: false,
        mute: false,
    };
    if let Err(End::Told(error)) = session.talk(&mut stream).await {
        session.replies.error(&error);
        let _ = stream.write_all(&session.replies.bytes).await;
    }
}

impl Session {
    async fn talk(&mut self, stream: &mut Stream) -> Result<(), End> {
        let mut input = BytesMut::with_capacity(4096);
        let mut context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
        loop {
            let refuse = |error: pgwire::error::PgWireError| End::Told(SqlError::fatal("08P01", error.to_string()));
            while let Some(message) = Frontend::decode(&mut input, &context).map_err(refuse)? {
                if !self.take(message, &mut context).await? {
                    return Ok(());
                }
            }
            if !self.replies.bytes.is_empty() {
                stream.write_all(&self.replies.bytes.split()).await?;
            }
            let reading = stream.read_buf(&mut input);
            let got = match self.settings.idle_in_transaction.filter(|_| self.transaction.is_some()) {
                None => reading.await?,
                Some(limit) => match madsim::time::timeout(limit, reading).await {
                    Ok(got) => got?,
                    Err(_) => {
                        let why = "terminating connection due to idle-in-transaction timeout";
                        return Err(End::Told(SqlError::fatal("25P03", why)));
                    }
                },
            };
            if got == 0 {
                return Err(End::Gone);
            }
        }
    }

    /// Handles one message. False: the client has said goodbye.
    async fn take(&mut self, message: Frontend, context: &mut DecodeContext) -> Result<bool, End> {
        let to_sync = matches!(message, Frontend::Sync(_) | Frontend::Terminate(_));
        if (self.skipping || self.mute) && !to_sync {
            return Ok(true);
        }
        match message {
            Frontend::SslNegotiation(asked) => {
                context.awaiting_frontend_ssl = false;
                if !matches!(asked, Negotiation::None) {
                    self.replies.put(&SslResponse::Refuse);
                }
            }
            Frontend::Startup(startup) => {
                context.awaiting_frontend_startup = false;
                self.startup(&startup);
            }
            Frontend::Query(query) => self.simple(&query.query).await,
            Frontend::Parse(parse) => {
                let done = self.parse(parse);
                self.extended(done);
            }
            Frontend::Bind(bind) => {
                let done = self.bind(&bind);
                self.extended(done);
            }
            Frontend::Describe(describe) => {
                let done = self.describe(&describe);
                self.extended(done);
            }
            Frontend::Execute(execute) => {
                let done = self.execute(&execute.name.unwrap_or_default(), execute.max_rows).await;
                self.extended(done);
            }
            Frontend::Close(close) => {
                let name = close.name.unwrap_or_default();
                match close.target_type {
                    b'S' => drop(self.statements.remove(&name)),
                    _ => drop(self.portals.remove(&name)),
                }
                self.replies.put(&CloseComplete::new());
            }
            Frontend::Flush(_) => {}
            Frontend::Sync(_) => {
                self.skipping = false;
                if !std::mem::take(&mut self.mute) {
                    self.ready();
                }
            }
            Frontend::Terminate(_) => return Ok(false),
            // there is nobody to cancel: statements take no time
            Frontend::CancelRequest(_) => return Ok(false),
            _ => return Err(End::Told(SqlError::fatal("0A000", "this message is not supported"))),
        }
        Ok(true)
    }

    fn startup(&mut self, startup: &Startup) {
        if let Some(options) = startup.parameters.get("options") {
            self.settings = Settings::from_options(options);
        }
        self.replies.put(&Authentication::Ok);
        for (name, value) in [("server_version", "16.0"), ("server_encoding", "UTF8"), ("client_encoding", "UTF8")] {
            self.replies.put(&ParameterStatus::new(name.into(), value.into()));
        }
        self.replies.put(&BackendKeyData::new(self.number as i32, SecretKey::I32(0)));
        self.ready();
    }

    fn ready(&mut self) {
        let status = match &self.transaction {
            None => TransactionStatus::Idle,
            Some(transaction) if transaction.failed => TransactionStatus::Error,
            Some(_) => TransactionStatus::Transaction,
        };
        self.replies.put(&ReadyForQuery::new(status));
    }

    fn fail(&mut self, error: &SqlError) {
        if let Some(transaction) = &mut self.transaction {
            transaction.failed = true;
        }
        self.replies.error(error);
    }

    fn extended(&mut self, done: Result<(), SqlError>) {
        if let Err(error) = done {
            self.fail(&error);
            self.skipping = true;
        }
    }

    /// A simple query: one or more statements as text.
    async fn simple(&mut self, text: &str) {
        let statements = sql::split(text);
        if statements.is_empty() {
            self.replies.put(&EmptyQueryResponse::new());
        }
        for text in statements {
            let prepared = self.database.engine().prepare(text).map(Prepared::unasked);
            let done = match prepared {
                Ok(prepared) => self.run(&prepared, &[], &[false]).await.map(|ended| (prepared, ended)),
                Err(error) => Err(error),
            };
            match done {
                Ok((prepared, Ended::Answered(outcome))) => {
                    if !prepared.columns.is_empty() {
                        self.replies.row_description(&prepared.columns, &[false]);
                    }
                    self.replies.result(text, prepared.command, prepared.columns.len(), outcome);
                }
                Ok((_, Ended::Lost)) => return self.replies.bytes.clear(),
                Err(error) => {
                    self.fail(&error);
                    break;
                }
            }
        }
        self.ready();
    }

    fn parse(&mut self, parse: Parse) -> Result<(), SqlError> {
        let prepared = self.database.engine().prepare(&parse.query)?;
        let mut oids = parse.type_oids;
        oids.resize(prepared.parameters, oid::TEXT);
        for known in &mut oids {
            if *known == oid::UNSPECIFIED {
                *known = oid::TEXT;
            }
        }
        self.statements.insert(parse.name.unwrap_or_default(), Statement { prepared, oids });
        self.replies.put(&ParseComplete::new());
        Ok(())
    }

    fn describe(&mut self, describe: &Describe) -> Result<(), SqlError> {
        let name = describe.name.as_deref().unwrap_or_default();
        if describe.target_type == b'S' {
            let statement = self.statements.get(name).ok_or_else(|| unknown("26000", "prepared statement", name))?;
            self.replies.put(&ParameterDescription::new(statement.oids.clone()));
            self.replies.row_description(&statement.prepared.columns, &[false]);
        } else {
            let portal = self.portals.get(name).ok_or_else(|| unknown("34000", "portal", name))?;
            self.replies.row_description(&portal.prepared.columns, &portal.binary);
        }
        Ok(())
    }

    fn bind(&mut self, bind: &Bind) -> Result<(), SqlError> {
        let name = bind.statement_name.as_deref().unwrap_or_default();
        let statement = self.statements.get(name).ok_or_else(|| unknown("26000", "prepared statement", name))?;
        if bind.parameters.len() != statement.oids.len() {
            let (given, wanted) = (bind.parameters.len(), statement.oids.len());
            return Err(SqlError::new("08P01", format!("{given} parameters are bound, the statement needs {wanted}")));
        }
        let binary = |codes: &[i16], index: usize| match codes {
            [] => false,
            [one] => *one == 1,
            many => many.get(index) == Some(&1),
        };
        let mut values = Vec::with_capacity(bind.parameters.len());
        for (index, (bytes, oid)) in bind.parameters.iter().zip(&statement.oids).enumerate() {
            values.push(value::from_wire(bytes.as_deref(), *oid, binary(&bind.parameter_format_codes, index))?);
        }
        let formats = bind.result_column_format_codes.iter().map(|code| *code == 1).collect();
        let portal = Portal { prepared: statement.prepared.clone(), values, binary: formats };
        self.portals.insert(bind.portal_name.clone().unwrap_or_default(), portal);
        self.replies.put(&BindComplete::new());
        Ok(())
    }

    async fn execute(&mut self, name: &str, max_rows: i32) -> Result<(), SqlError> {
        if max_rows != 0 {
            return Err(SqlError::new("0A000", "portals are executed as a whole"));
        }
        let portal = self.portals.remove(name).ok_or_else(|| unknown("34000", "portal", name))?;
        let prepared = &portal.prepared;
        match self.run(prepared, &portal.values, &portal.binary).await? {
            Ended::Answered(outcome) => {
                self.replies.result(&prepared.text, prepared.command, prepared.columns.len(), outcome);
            }
            Ended::Lost => {
                self.replies.bytes.clear();
                self.mute = true;
            }
        }
        Ok(())
    }

    /// Runs a statement, within the open transaction block or as a transaction of its own.
    async fn run(&mut self, prepared: &Prepared, values: &[Value], binary: &[bool]) -> Result<Ended, SqlError> {
        match prepared.command {
            Command::Commit => return self.commit(),
            Command::Rollback => {
                drop(self.end_block());
                return Ok(Ended::Answered(Outcome::default()));
            }
            _ => {}
        }
        if self.transaction.as_ref().is_some_and(|open| open.failed) && prepared.command != Command::RollbackTo {
            let why = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(SqlError::new("25P02", why));
        }
        match prepared.command {
            Command::Begin => {
                let database = &self.database;
                database.blocks.fetch_add(1, Ordering::Relaxed);
                self.transaction.get_or_insert_with(|| Transaction {
                    block: database.rows.is_some().then(|| Block::new(database)),
                    ..Transaction::default()
                });
                Ok(Ended::Answered(Outcome::default()))
            }
            Command::Set => match sql::setting(&prepared.text) {
                _ if sql::is_local(&prepared.text) && !self.keep_settings() => Ok(Ended::Answered(Outcome::default())),
                Some((name, value)) if self.settings.set(&name, &value) => Ok(Ended::Answered(Outcome::default())),
                _ => Err(SqlError::new("22023", format!("invalid setting: {}", prepared.text))),
            },
            _ => self.run_data(prepared, values, binary).await,
        }
    }

    fn commit(&mut self) -> Result<Ended, SqlError> {
        let Some(mut transaction) = self.end_block() else { return Ok(Ended::Answered(Outcome::default())) };
        if transaction.failed {
            return Ok(Ended::Answered(Outcome::default()));
        }
        if let Some(hold) = transaction.hold {
            hold.commit()?;
        }
        if let Some(block) = transaction.block.take() {
            block.commit()?;
        }
        Ok(self.committed(transaction.executed, transaction.untagged, Outcome::default()))
    }

    fn committed(&self, executed: Vec<Executed>, untagged: Vec<super::TaskChange>, outcome: Outcome) -> Ended {
        if executed.is_empty() && untagged.is_empty() {
            return Ended::Answered(outcome);
        }
        let commit = Commit { peer: self.peer, session: self.number, executed, untagged };
        match self.database.gate.committed(&commit) {
            Answer::Send => Ended::Answered(outcome),
            Answer::Lose => Ended::Lost,
        }
    }

    async fn run_data(&mut self, prepared: &Prepared, values: &[Value], binary: &[bool]) -> Result<Ended, SqlError> {
        if self.transaction.as_ref().is_some_and(|open| open.block.is_some()) {
            return self.run_in_block(prepared, values, binary).await;
        }
        let _row = self.row_of_a_single_write(prepared, values).await?;
        let kept = self.transaction.as_mut().and_then(|transaction| transaction.hold.take());
        let fresh = kept.is_none();
        let mut hold = match kept {
            Some(hold) => hold,
            None => Hold::wait(&self.database, &self.settings).await?,
        };
        let request = self.request(prepared, values)?;
        if let Some(request) = &request {
            match self.database.gate.arrived(request) {
                Arrival::Execute => {}
                Arrival::Lose => return Ok(self.lost(hold, fresh)),
                Arrival::Hold(release) if fresh => {
                    // the sender stands still before sending: nothing of the statement is here, no lock either
                    drop(hold);
                    if release.await.is_err() {
                        return Ok(Ended::Lost);
                    }
                    hold = Hold::wait(&self.database, &self.settings).await?;
                }
                Arrival::Hold(release) => {
                    if release.await.is_err() {
                        return Ok(self.lost(hold, fresh));
                    }
                }
            }
        }
        if self.transaction.is_some() {
            hold.begin()?;
        }
        self.database.statements.fetch_add(1, Ordering::Relaxed);
        let mut result = self.database.engine().execute(prepared, values, binary);
        let (mut executed, mut untagged) = (Vec::new(), Vec::new());
        if let Ok(outcome) = &mut result {
            let changes = std::mem::take(&mut outcome.changes);
            match request {
                Some(request) => {
                    let (count, engine) = (outcome.count, self.database.engine());
                    let behind: Vec<_> = changes.iter().filter_map(|change| request.behind(change)).collect();
                    let idle = request.presented.iter().filter(|one| !behind.contains(one));
                    let unchanged = idle.filter_map(|one| Some((*one, engine.look(one.task)?))).collect();
                    drop(engine);
                    let now_ms = self.database.now_ms();
                    executed.push(Executed { request, count, changes, now_ms, unchanged });
                }
                None => untagged = changes,
            }
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.hold = Some(hold);
            transaction.executed.append(&mut executed);
            transaction.untagged.append(&mut untagged);
            if prepared.command == Command::RollbackTo && result.is_ok() {
                transaction.failed = false;
            }
            return result.map(Ended::Answered);
        }
        // committed: the hold ends before anybody is told
        drop(hold);
        result.map(|outcome| self.committed(executed, untagged, outcome))
    }

    /// The statement never came. What the block has locked before it stays locked.
    fn lost(&mut self, hold: Hold, fresh: bool) -> Ended {
        if let Some(transaction) = self.transaction.as_mut().filter(|_| !fresh) {
            transaction.hold = Some(hold);
        }
        Ended::Lost
    }

    /// The statement as the gate sees it, if it is tagged.
    fn request(&self, prepared: &Prepared, values: &[Value]) -> Result<Option<Request>, SqlError> {
        let Some(tag) = &prepared.tag else { return Ok(None) };
        let value = |parameter: Option<usize>| values.get(parameter?.checked_sub(1)?);
        let number = |parameter: Option<usize>| match value(parameter) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        };
        let epoch = |parameter| number(parameter).and_then(|epoch| Epoch::try_from(epoch).ok());
        let mut presented: Vec<_> =
            number(tag.id).map(|task| Presented { task, epoch: epoch(tag.epoch) }).into_iter().collect();
        for first in (tag.pairs.unwrap_or(usize::MAX)..=values.len()).step_by(2) {
            presented.extend(number(Some(first)).map(|task| Presented { task, epoch: epoch(Some(first + 1)) }));
        }
        let effect = match value(tag.effect) {
            Some(Value::Text(key)) => Some(key.clone()),
            _ => None,
        };
        let does_something = match self.database.gate.asks(self.peer, &tag.op) {
            true => Some(self.database.engine().would_do_something(prepared, values)?),
            false => None,
        };
        Ok(Some(Request {
            peer: self.peer,
            session: self.number,
            op: tag.op.clone(),
            presented,
            effect,
            does_something,
        }))
    }
}

fn unknown(code: &'static str, what: &str, name: &str) -> SqlError {
    SqlError::new(code, format!("{what} {name:?} does not exist"))
}
