//! Several checks of one object, each of which may find something wrong: all of it is told at once.
use crate::error::{Error, Fault, FaultCode, MOST_FAULTS, Result};

/// What the checks have said so far.
#[derive(Default)]
pub struct Checks {
    faults: Vec<Fault>,
    /// What came first and is no fault of a field: it is all that is told.
    other: Option<Error>,
}

impl Checks {
    /// Notes what a check says. What is no fault of a field counts only if nothing was found before: whoever mends those asks again.
    pub fn add(&mut self, checked: Result<()>) {
        if self.other.is_some() {
            return;
        }
        match checked {
            Ok(()) => {}
            Err(Error::Invalid { field, reason }) => self.faults.push(Fault::of_value(field, reason)),
            Err(Error::Faults(faults)) => self.faults.extend(faults),
            Err(error) if self.faults.is_empty() => self.other = Some(error),
            Err(_) => {}
        }
        self.faults.truncate(MOST_FAULTS);
    }

    /// A value that is refused.
    pub fn refuse(&mut self, field: impl Into<String>, reason: impl Into<String>) {
        self.add(Err(Error::invalid(field, reason)));
    }

    pub fn end(self) -> Result<()> {
        match (self.other, &self.faults[..]) {
            (Some(error), _) => Err(error),
            (None, []) => Ok(()),
            // One fault is told by the error that everybody knows.
            (None, [one]) if one.code == FaultCode::InvalidValue => {
                Err(Error::invalid(one.field.clone(), one.reason.clone()))
            }
            (None, _) => Err(Error::Faults(self.faults)),
        }
    }
}

/// Two parts of one thing; or all that is wrong with either.
pub fn both<A, B>(first: Result<A>, second: Result<B>) -> Result<(A, B)> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Err(first), Err(second)) => {
            let mut checks = Checks::default();
            checks.add(Err(first));
            checks.add(Err(second.clone()));
            checks.end().and(Err(second))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(checks: Checks) -> Vec<String> {
        match checks.end() {
            Ok(()) => Vec::new(),
            Err(Error::Invalid { field, .. }) => vec![field],
            Err(Error::Faults(faults)) => faults.into_iter().map(|fault| fault.field).collect(),
            Err(other) => vec![other.to_string()],
        }
    }

    #[test]
    fn what_comes_first_is_told_first_and_faults_together() {
        let checked = |all: &[Result<()>]| {
            let mut checks = Checks::default();
            all.iter().cloned().for_each(|one| checks.add(one));
            said(checks)
        };
        let (a, b) = (Error::invalid("a", "is bad"), Error::invalid("b", "is bad"));
        let gone = Error::NotFound("agent");
        assert_eq!(checked(&[Ok(()), Ok(())]), [""; 0]);
        assert_eq!(checked(&[Err(a.clone()), Ok(()), Err(b.clone())]), ["a", "b"]);
        assert_eq!(checked(&[Ok(()), Err(b.clone())]), ["b"]);
        assert_eq!(checked(&[Err(a.clone()), Err(gone.clone()), Err(b)]), ["a", "b"]);
        assert_eq!(checked(&[Err(gone), Err(a.clone())]), ["no such agent"]);
        assert_eq!(checked(&vec![Err(a); 100]).len(), MOST_FAULTS);
    }
}
