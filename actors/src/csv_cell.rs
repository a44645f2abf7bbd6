//! Cells of the CSV files that people open in spreadsheets: whatever somebody wrote into a name or an answer, none of them
//! computes anything there.
use csv::{QuoteStyle, Writer, WriterBuilder};

/// Every cell in quotes, so that what stands in it parts no cells.
pub fn writer() -> Writer<Vec<u8>> {
    WriterBuilder::new()
        .quote_style(QuoteStyle::Always)
        .from_writer(Vec::new())
}

/// A text that no spreadsheet takes for a formula: where one could begin an apostrophe is put. Phone numbers stay as they are.
pub fn plain(text: &str) -> String {
    let is_number = text
        .strip_prefix('+')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
    if is_number {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut may_begin = true;
    for (at, letter) in text.char_indices() {
        // A tab or a line break is taken for a beginning only where the cell begins.
        let is_break = at == 0 && matches!(letter, '\t' | '\r' | '\n');
        if is_break || may_begin && begins_a_formula(&text[at..]) {
            plain.push('\'');
        }
        plain.push(letter);
        may_begin = parts_cells(letter);
    }
    plain
}

/// Blanks and quotes before it are skipped, as spreadsheets do.
fn begins_a_formula(text: &str) -> bool {
    let first = text.trim_start_matches(is_skipped).chars().next();
    first.is_some_and(|first| {
        matches!(
            first,
            '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠' | '﹢' | '﹣' | '﹦' | '﹫' | '−'
        )
    })
}

fn is_skipped(letter: char) -> bool {
    let is_invisible = matches!(letter, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}');
    let is_quote = matches!(letter, '"' | '“' | '”');
    !parts_cells(letter) && (is_quote || is_invisible || letter.is_whitespace() || letter.is_control())
}

/// Where programs begin a new cell that do not split at commas, or do not heed quotes.
fn parts_cells(letter: char) -> bool {
    matches!(
        letter,
        ';' | '；' | '|' | '｜' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("+cmd|x", "'+cmd|x"),
            ("-1", "'-1"),
            ("@x", "'@x"),
            ("＝1+1", "'＝1+1"),
            ("＋1", "'＋1"),
            ("－1", "'－1"),
            ("＠x", "'＠x"),
            ("\t=1", "'\t'=1"),
            ("\r=1", "'\r'=1"),
            (" =1", "' =1"),
            ("\"=1", "'\"=1"),
            ("a;=1+1", "a;'=1+1"),
            ("a; \"=1+1", "a;' \"=1+1"),
            ("a；＝1", "a；'＝1"),
            ("a\t=1", "a\t'=1"),
            ("a|@x", "a|'@x"),
            ("a\n+1", "a\n'+1"),
            ("a\u{2028}=1", "a\u{2028}'=1"),
            ("a;b;-c", "a;b;'-c"),
            ("+15002345670", "+15002345670"),
            ("+", "'+"),
            ("Ann", "Ann"),
            ("1 = 1, a-b", "1 = 1, a-b"),
            ("yes; no", "yes; no"),
            ("a\n\nb\tc", "a\n\nb\tc"),
            ("", ""),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }

    #[test]
    fn every_cell_is_in_quotes() {
        let mut writer = writer();
        writer.write_record(["a", "", "b\"c;d"]).unwrap();
        assert_eq!(writer.into_inner().ok().unwrap(), b"\"a\",\"\",\"b\"\"c;d\"\n");
    }
}
