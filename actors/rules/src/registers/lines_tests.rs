use super::*;
use proptest::prelude::*;

type Entries = Vec<(String, u16)>;

/// The file in pieces of that size: its entries and whether it has dates, or the fields and reasons that are told.
fn read_in(country: &str, file: &[u8], piece: usize) -> Result<(Entries, bool), Vec<(String, String)>> {
    let fetched_at = Moment::parse("2026-11-30T00:00:00Z").unwrap();
    let mut lines = Lines::new(country.parse().unwrap(), fetched_at);
    let mut found = Entries::new();
    let told = |error: Error| match error {
        Error::Faults(faults) => faults
            .into_iter()
            .map(|fault| (fault.field, fault.reason))
            .collect::<Vec<_>>(),
        other => panic!("{other}"),
    };
    let mut take = |number: &str, day: u16| found.push((number.to_owned(), day));
    for bytes in file.chunks(piece.max(1)) {
        lines.read(bytes, &mut take).map_err(told)?;
    }
    let has_dates = lines.end(&mut take).map_err(told)?;
    Ok((found, has_dates))
}

fn read(file: &str) -> Result<(Entries, bool), Vec<(String, String)>> {
    read_in("US", file.as_bytes(), 1 << 20)
}

fn numbers(file: &str) -> Vec<String> {
    let (entries, _) = read(file).unwrap();
    entries.into_iter().map(|(number, _)| number).collect()
}

#[test]
fn each_kind_of_file_is_read() {
    let two = ["+12125550123", "+12125550124"];
    for file in [
        "2125550123\n2125550124\n",
        "2125550123\r\n2125550124",
        "\u{feff}+12125550123\n\n\n(212) 555-0124\n",
        "212,5550123\n212,5550124\n",
        "\"212\",\"5550123\"\n\"212\",\"555-0124\"\n",
        "212;5550123\n212;5550124\n",
        "212\t5550123\n212\t5550124\n",
        // Lists that were put together.
        "2125550123\n212,5550124\n",
        "phone_number\n2125550123\n2125550124\n",
        "Phone_Number\n\"2125550123\"\n2125550124\n",
        "phone_number,listed_at\n2125550123,2020-01-01\n2125550124,\n",
        "listed_at;phone_number\n2020-01-01;2125550123\n;2125550124\n",
    ] {
        assert_eq!(numbers(file), two, "{file:?}");
    }
    assert_eq!(read("").unwrap(), (Vec::new(), false));
}

#[test]
fn days_come_with_their_numbers_where_a_column_holds_them() {
    let (entries, has_dates) = read("phone_number,listed_at\n2125550123,2026-11-30\n2125550124,\n").unwrap();
    assert!(has_dates);
    assert_eq!(entries[0].1, 9_830);
    assert_eq!(entries[1].1, day::UNKNOWN);
    let (entries, has_dates) = read("phone_number\n2125550123\n").unwrap();
    assert_eq!((entries[0].1, has_dates), (day::UNKNOWN, false));
}

#[test]
fn a_bad_line_is_told_with_its_place() {
    for (file, line, said) in [
        ("2125550123\nhello\n", "line 2", "`hello` is not a phone number"),
        ("name\n2125550123\n", "line 1", "`name` is not a phone number"),
        ("phone_number,name\n2125550123,Ann\n", "line 1", "names a column `name`"),
        ("phone_number,phone_number\n", "line 1", "names a column twice"),
        (
            "phone_number,listed_at\n2125550123\n",
            "line 2",
            "has 1 cells, and the first line names 2",
        ),
        (
            "phone_number,listed_at\n2125550123,soon\n",
            "line 2",
            "that is not a day",
        ),
        (
            "phone_number,listed_at\n2125550123,2026-12-02\n",
            "line 2",
            "after the file was given out",
        ),
        ("212,5550123\n212,x\n", "line 2", "is not an area code and a number"),
        ("2125550123,2020-01-01\n", "line 1", "is not an area code and a number"),
        ("2125550123\n<html>", "line 2", "is not a phone number"),
    ] {
        let told = read(file).unwrap_err();
        assert_eq!((told.len(), told[0].0.as_str()), (1, line), "{file:?}: {told:?}");
        assert!(told[0].1.contains(said), "{file:?}: {told:?}");
    }
    let told = read_in("GB", b"212,5550123\n", 100).unwrap_err();
    assert!(told[0].1.contains("name them in the first line"), "{told:?}");
    let told = read_in("US", b"2125550123\n\xff\xfe\n", 100).unwrap_err();
    assert!(told[0].0 == "line 2" && told[0].1.contains("is not UTF-8"), "{told:?}");
}

#[test]
fn only_the_first_bad_lines_are_told_and_none_is_shown_whole() {
    let told = read(&"x\n".repeat(1_000)).unwrap_err();
    assert_eq!((told.len(), told[19].0.as_str()), (MOST_FAULTS, "line 20"));
    let told = read(&format!("{}\n", "9".repeat(200))).unwrap_err();
    assert!(told[0].1.len() < 100, "{told:?}");
    // A line that never ends is not kept.
    let endless = "9".repeat(10_000);
    let told = read_in("US", endless.as_bytes(), 100).unwrap_err();
    assert!(told[0].1.contains("is longer than 256 bytes"), "{told:?}");
}

proptest! {
    /// However a file is cut on its way, it holds the same.
    #[test]
    fn pieces_of_any_size_make_the_same_file(
        rows in prop::collection::vec((200_u32..1000, 2_000_000_u32..10_000_000, 0_u8..4), 1..40),
        piece in 1_usize..50,
        returns in any::<bool>(),
    ) {
        let end = if returns { "\r\n" } else { "\n" };
        let line = |(area, local, kind): &(u32, u32, u8)| match kind {
            0 => format!("{area}{local}"),
            1 => format!("+1{area}{local}"),
            2 => format!("{area},{local}"),
            _ => format!("{area} {local}\n"),
        };
        let file: String = rows.iter().map(|row| line(row) + end).collect();
        let whole = read_in("US", file.as_bytes(), usize::MAX).unwrap();
        prop_assert_eq!(whole.0.len(), rows.len());
        prop_assert_eq!(read_in("US", file.as_bytes(), piece).unwrap(), whole);
    }

    #[test]
    fn nothing_makes_it_fall_over(file in prop::collection::vec(any::<u8>(), 0..400), piece in 1_usize..64) {
        // One cut must not change what is told either, but for how soon a line without an end is given up.
        let whole = read_in("US", &file, usize::MAX).is_ok();
        prop_assert_eq!(read_in("US", &file, piece).is_ok(), whole);
    }
}
