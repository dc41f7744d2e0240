//! Values between PostgreSQL's wire formats and SQLite's storage classes.

use bytes::{BufMut, BytesMut};
use rusqlite::types::{Value, ValueRef};

use super::error::SqlError;

/// PostgreSQL's type oids, as far as this node knows them.
pub(crate) mod oid {
    pub const UNSPECIFIED: u32 = 0;
    pub const BOOL: u32 = 16;
    pub const BYTEA: u32 = 17;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const TEXT: u32 = 25;
    pub const FLOAT4: u32 = 700;
    pub const FLOAT8: u32 = 701;
    pub const JSONB: u32 = 3802;
}

/// The type a column declared so in SQLite's schema has in PostgreSQL's.
pub(crate) fn oid_of_declared(declared: &str) -> u32 {
    let upper = declared.to_ascii_uppercase();
    match upper.split(['(', ' ']).next().unwrap_or_default() {
        "BOOLEAN" | "BOOL" => oid::BOOL,
        "BLOB" | "BYTEA" => oid::BYTEA,
        "BIGINT" | "INTEGER" | "INT" | "INT8" | "BIGSERIAL" => oid::INT8,
        "REAL" | "DOUBLE" | "FLOAT" => oid::FLOAT8,
        _ => oid::TEXT,
    }
}

fn invalid(bytes: &[u8], oid: u32) -> SqlError {
    SqlError::new("22P03", format!("{} bytes are no binary value of the type with oid {oid}", bytes.len()))
}

/// A parameter as a client has bound it.
pub(crate) fn from_wire(bytes: Option<&[u8]>, oid: u32, binary: bool) -> Result<Value, SqlError> {
    let Some(bytes) = bytes else { return Ok(Value::Null) };
    if !binary {
        return from_text(bytes, oid);
    }
    let int = |value: i64| Ok(Value::Integer(value));
    let fail = |_| invalid(bytes, oid);
    match oid {
        oid::BOOL => int(i64::from(<[u8; 1]>::try_from(bytes).map_err(fail)? != [0])),
        oid::INT2 => int(i64::from(i16::from_be_bytes(bytes.try_into().map_err(fail)?))),
        oid::INT4 => int(i64::from(i32::from_be_bytes(bytes.try_into().map_err(fail)?))),
        oid::INT8 => int(i64::from_be_bytes(bytes.try_into().map_err(fail)?)),
        oid::FLOAT4 => Ok(Value::Real(f64::from(f32::from_be_bytes(bytes.try_into().map_err(fail)?)))),
        oid::FLOAT8 => Ok(Value::Real(f64::from_be_bytes(bytes.try_into().map_err(fail)?))),
        oid::BYTEA => Ok(Value::Blob(bytes.to_vec())),
        // jsonb's binary form is a version byte and the text
        oid::JSONB if bytes.first() == Some(&1) => text(&bytes[1..]),
        _ => text(bytes),
    }
}

fn text(bytes: &[u8]) -> Result<Value, SqlError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Value::Text(text.to_owned())),
        Err(_) => Err(SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\"")),
    }
}

fn from_text(bytes: &[u8], oid: u32) -> Result<Value, SqlError> {
    let Value::Text(text) = text(bytes)? else { return Ok(Value::Null) };
    let wrong = |_| SqlError::new("22P02", format!("invalid input syntax for the type with oid {oid}: {text:?}"));
    match oid {
        oid::BOOL => Ok(Value::Integer(i64::from(matches!(text.as_str(), "t" | "true" | "1")))),
        oid::INT2 | oid::INT4 | oid::INT8 => text.parse().map(Value::Integer).map_err(|e| wrong(format!("{e}"))),
        oid::FLOAT4 | oid::FLOAT8 => text.parse().map(Value::Real).map_err(|e| wrong(format!("{e}"))),
        oid::BYTEA => match text.strip_prefix("\\x").and_then(unhex) {
            Some(bytes) => Ok(Value::Blob(bytes)),
            None => Err(wrong(String::new())),
        },
        _ => Ok(Value::Text(text)),
    }
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}

/// Appends a column's value, length first, to a data row.
///
/// # Errors
/// A value whose storage class does not fit the type the column was described with: SQLite lets any column hold
/// anything, PostgreSQL does not, and a client would misread the bytes.
pub(crate) fn to_wire(value: ValueRef<'_>, oid: u32, binary: bool, out: &mut BytesMut) -> Result<(), SqlError> {
    let put = |out: &mut BytesMut, bytes: &[u8]| {
        out.put_i32(bytes.len() as i32);
        out.put_slice(bytes);
    };
    match (value, oid) {
        (ValueRef::Null, _) => out.put_i32(-1),
        (ValueRef::Integer(i), oid::BOOL) if binary => put(out, &[u8::from(i != 0)]),
        (ValueRef::Integer(i), oid::BOOL) => put(out, if i != 0 { b"t" } else { b"f" }),
        (ValueRef::Integer(i), oid::INT8) if binary => put(out, &i.to_be_bytes()),
        (ValueRef::Integer(i), oid::FLOAT8) if binary => put(out, &(i as f64).to_be_bytes()),
        (ValueRef::Integer(i), oid::INT8 | oid::FLOAT8) => put(out, i.to_string().as_bytes()),
        (ValueRef::Integer(i), oid::TEXT) if !binary => put(out, i.to_string().as_bytes()),
        (ValueRef::Real(f), oid::TEXT) if !binary => put(out, f.to_string().as_bytes()),
        (ValueRef::Real(f), oid::FLOAT8) if binary => put(out, &f.to_be_bytes()),
        (ValueRef::Real(f), oid::FLOAT8) => put(out, f.to_string().as_bytes()),
        (ValueRef::Text(text), oid::TEXT) => put(out, text),
        (ValueRef::Blob(bytes), oid::BYTEA) if binary => put(out, bytes),
        (ValueRef::Blob(bytes), oid::BYTEA) => {
            let mut hex = String::from("\\x");
            for byte in bytes {
                hex.push_str(&format!("{byte:02x}"));
            }
            put(out, hex.as_bytes());
        }
        (value, _) => {
            let why = format!("a column described with type oid {oid} holds a value of type {}", value.data_type());
            return Err(SqlError::new("42804", why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(value: &Value, oid: u32, binary: bool) -> Option<Vec<u8>> {
        let mut out = BytesMut::new();
        to_wire(ValueRef::from(value), oid, binary, &mut out).unwrap();
        (out[..4] != [0xff; 4]).then(|| out[4..].to_vec())
    }

    #[test]
    fn every_type_survives_the_way_there_and_back_in_both_formats() {
        let values = [
            (Value::Integer(-5), oid::INT8),
            (Value::Integer(1), oid::BOOL),
            (Value::Integer(0), oid::BOOL),
            (Value::Real(1.5), oid::FLOAT8),
            (Value::Text("käse".into()), oid::TEXT),
            (Value::Blob(vec![0, 255, 16]), oid::BYTEA),
            (Value::Null, oid::TEXT),
        ];
        for (value, oid) in values {
            for binary in [false, true] {
                let sent = wire(&value, oid, binary);
                assert_eq!(from_wire(sent.as_deref(), oid, binary).unwrap(), value, "{oid} binary {binary}");
            }
        }
    }

    #[test]
    fn a_value_that_does_not_fit_its_column_is_an_error_and_not_garbage() {
        let mut out = BytesMut::new();
        assert_eq!(to_wire(ValueRef::Text(b"x"), oid::INT8, true, &mut out).unwrap_err().code, "42804");
        assert_eq!(from_wire(Some(b"abc"), oid::INT8, true).unwrap_err().code, "22P03");
        assert_eq!(from_wire(Some(b"x1"), oid::INT8, false).unwrap_err().code, "22P02");
        assert_eq!(from_wire(Some(&[0xff]), oid::TEXT, false).unwrap_err().code, "22021");
    }

    #[test]
    fn declared_types_are_read_as_a_person_would() {
        assert_eq!(oid_of_declared("BIGINT"), oid::INT8);
        assert_eq!(oid_of_declared("varchar(64)"), oid::TEXT);
        assert_eq!(oid_of_declared("BOOLEAN"), oid::BOOL);
        assert_eq!(oid_of_declared("DOUBLE PRECISION"), oid::FLOAT8);
        assert_eq!(oid_of_declared("BLOB"), oid::BYTEA);
    }
}
