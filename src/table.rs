//! Plain tables for the terminal: columns as wide as their widest cell, the last one cut at the edge.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Lays out rows under a header. Columns are two spaces apart.
pub fn layout(header: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.width()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let line = |cells: Vec<&str>| {
        let mut out = String::new();
        for (cell, width) in cells.iter().zip(&widths) {
            out.push_str(cell);
            out.push_str(&" ".repeat(width - cell.width() + 2));
        }
        out.trim_end().to_owned()
    };
    let mut out = vec![line(header.to_vec())];
    out.extend(rows.iter().map(|row| line(row.iter().map(String::as_str).collect())));
    out
}

/// Breaks a text at spaces into lines of at most `width` columns.
pub fn fill(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |line| line.width());
        if used > 0 && used + 1 + word.width() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Cuts a text to `width` columns, with an ellipsis if something is lost.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used >= width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![vec!["a".into(), "1".into()], vec!["bbb".into(), "22".into()]];
        assert_eq!(layout(&["x", "y"], &rows), ["x    y", "a    1", "bbb  22"]);
    }

    #[test]
    fn a_text_is_filled_and_cut_by_columns() {
        assert_eq!(fill("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abc", 3), "abc");
    }
}
