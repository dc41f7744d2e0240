//! The path of the field at a place of a TOML text: `faults[0].for`. The reader's own errors have a place and no field.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The innermost field whose key or value is at this offset; empty where there is none, or the text is not TOML.
pub(crate) fn field_at(text: &str, offset: usize) -> String {
    let mut path = String::new();
    if let Ok(table) = DeTable::parse(text) {
        in_table(table.get_ref(), offset, &mut path);
    }
    path
}

fn in_table(table: &DeTable<'_>, offset: usize, path: &mut String) -> bool {
    table.iter().any(|(key, value)| {
        let before = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        // It is shown on a terminal: a quoted key may hold anything.
        path.extend(key.get_ref().escape_debug());
        let is_here = in_value(value, offset, path) || key.span().contains(&offset);
        if !is_here {
            path.truncate(before);
        }
        is_here
    })
}

fn in_value(value: &Spanned<DeValue<'_>>, offset: usize, path: &mut String) -> bool {
    let inner = match value.get_ref() {
        DeValue::Table(table) => in_table(table, offset, path),
        DeValue::Array(array) => array.iter().enumerate().any(|(index, value)| {
            let before = path.len();
            path.push_str(&format!("[{index}]"));
            let is_here = in_value(value, offset, path);
            if !is_here {
                path.truncate(before);
            }
            is_here
        }),
        _ => false,
    };
    inner || value.span().contains(&offset)
}
