//! The files of registers: one number a line, with a first line that names the columns or without one; or an area code and a number.
//!
//! A line that is not a number is never passed over: of a list that was cut off or mixed up nobody knows whom it leaves out.
use super::{day, number::Plan};
use chrono::{Days, NaiveDate};
use entities::{
    Error, Result,
    error::{Fault, MOST_FAULTS},
    values::{Country, Moment},
};

/// Bytes of one line.
const LONGEST: usize = 256;
/// Characters of a bad line that are shown.
const SHOWN: usize = 40;

/// What the lines of a file hold, in the order of their cells.
#[derive(Clone, Copy, Debug)]
enum Layout {
    /// A number, or an area code and a number.
    Bare(char),
    Named {
        delimiter: char,
        columns: usize,
        number: usize,
        date: Option<usize>,
    },
}

/// Reads a file as it comes in.
pub struct Lines {
    plan: Plan,
    /// No number is listed later.
    latest: NaiveDate,
    layout: Option<Layout>,
    /// Lines that have come in.
    count: u64,
    /// How the line begins that has not ended.
    rest: Vec<u8>,
    faults: Vec<Fault>,
}

impl Lines {
    /// `country`: whose national numbers the file holds.
    pub fn new(country: Country, fetched_at: Moment) -> Self {
        let day = fetched_at.datetime().date_naive();
        Lines {
            plan: Plan::of(country),
            // It was tomorrow already where it was given out.
            latest: day.checked_add_days(Days::new(1)).unwrap_or(day),
            layout: None,
            count: 0,
            rest: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Hands each number, in E.164, to `take`, with the day since which it is listed. Fails once there are as many bad lines as are told.
    pub fn read(&mut self, bytes: &[u8], take: &mut dyn FnMut(&str, u16)) -> Result<()> {
        let mut left = bytes;
        while let Some(end) = left.iter().position(|byte| *byte == b'\n') {
            let (line, behind) = left.split_at(end);
            left = behind.get(1..).unwrap_or_default();
            if self.rest.is_empty() {
                self.line(line, take);
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(line);
                self.line(&whole, take);
            }
            if self.is_given_up() {
                return self.refused();
            }
        }
        self.rest.extend_from_slice(left);
        if self.rest.len() > LONGEST {
            // It may never end.
            let line = std::mem::take(&mut self.rest);
            self.line(&line, take);
            return self.refused();
        }
        Ok(())
    }

    /// The file ends here. Answers whether it says since when numbers are listed.
    pub fn end(mut self, take: &mut dyn FnMut(&str, u16)) -> Result<bool> {
        if !self.rest.is_empty() {
            let line = std::mem::take(&mut self.rest);
            self.line(&line, take);
        }
        self.refused()?;
        Ok(matches!(self.layout, Some(Layout::Named { date: Some(_), .. })))
    }

    /// There are as many bad lines as are told; or nobody knows what the others would hold.
    fn is_given_up(&self) -> bool {
        self.faults.len() >= MOST_FAULTS || (self.layout.is_none() && !self.faults.is_empty())
    }

    fn refused(&mut self) -> Result<()> {
        match std::mem::take(&mut self.faults) {
            faults if faults.is_empty() => Ok(()),
            faults => Err(Error::Faults(faults)),
        }
    }

    fn fault(&mut self, line: &[u8], why: &str) {
        let shown = String::from_utf8_lossy(line);
        let shown: String = shown
            .chars()
            .filter(|letter| !letter.is_control())
            .take(SHOWN)
            .collect();
        let fault = Fault::of_value(format!("line {}", self.count), format!("`{shown}` {why}"));
        self.faults.push(fault);
    }

    fn line(&mut self, bytes: &[u8], take: &mut dyn FnMut(&str, u16)) {
        self.count += 1;
        let bytes = match self.count {
            1 => bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
            _ => bytes,
        };
        if bytes.len() > LONGEST {
            return self.fault(bytes, &format!("is longer than {LONGEST} bytes"));
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return self.fault(bytes, "is not UTF-8");
        };
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let layout = match self.layout {
            Some(layout) => layout,
            None => match Layout::of(text) {
                Ok((layout, is_header)) => {
                    self.layout = Some(layout);
                    if is_header {
                        return;
                    }
                    layout
                }
                Err(why) => return self.fault(bytes, &why),
            },
        };
        match self.entry(layout, text) {
            Ok((number, day)) => take(&number, day),
            Err(why) => self.fault(bytes, &why),
        }
    }

    fn entry(&self, layout: Layout, text: &str) -> Result<(String, u16), String> {
        match layout {
            Layout::Bare(delimiter) => {
                let number = match text.split_once(delimiter) {
                    None => self.plan.read(cell(text)),
                    Some((area, local)) => self.plan.read_pair(cell(area), cell(local)),
                };
                number.map(|number| (number, day::UNKNOWN))
            }
            Layout::Named {
                delimiter,
                columns,
                number,
                date,
            } => {
                let cells: Vec<&str> = text.split(delimiter).map(cell).collect();
                if cells.len() != columns {
                    return Err(format!("has {} cells, and the first line names {columns}", cells.len()));
                }
                let of = |place: usize| cells.get(place).copied().unwrap_or_default();
                let day = date.map_or(Ok(day::UNKNOWN), |place| day::read(of(place), self.latest))?;
                Ok((self.plan.read(of(number))?, day))
            }
        }
    }
}

impl Layout {
    /// What the first line says of all; and is it nothing but that?
    fn of(first: &str) -> Result<(Self, bool), String> {
        let delimiter = [';', '\t'].into_iter().find(|delimiter| first.contains(*delimiter));
        let delimiter = delimiter.unwrap_or(',');
        let names: Vec<String> = first.split(delimiter).map(|name| cell(name).to_lowercase()).collect();
        let place = |wanted: &str| names.iter().position(|name| name == wanted);
        let Some(number) = place("phone_number") else {
            return Ok((Layout::Bare(delimiter), false));
        };
        if let Some(other) = names
            .iter()
            .find(|name| !["phone_number", "listed_at"].contains(&name.as_str()))
        {
            return Err(format!(
                "names a column `{other}`: the columns are `phone_number` and, if you have it, `listed_at`"
            ));
        }
        let columns = names.len();
        if columns > 2 || names.iter().filter(|name| *name == "phone_number").count() > 1 {
            return Err("names a column twice".into());
        }
        let layout = Layout::Named {
            delimiter,
            columns,
            number,
            date: place("listed_at"),
        };
        Ok((layout, true))
    }
}

/// Without what may stand around it.
fn cell(text: &str) -> &str {
    text.trim().trim_matches('"').trim()
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
