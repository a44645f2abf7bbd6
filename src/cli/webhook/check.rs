//! One thing that was looked at.

/// What is known of one part.
#[derive(Debug, PartialEq)]
pub struct Check {
    pub part: &'static str,
    pub verdict: Verdict,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Fine,
    /// Worth knowing; the request verifies all the same.
    Warning,
    Wrong,
}

impl Check {
    pub fn new(part: &'static str, verdict: Verdict, message: impl Into<String>) -> Self {
        let message = message.into();
        Check { part, verdict, message }
    }
    pub fn wrong(part: &'static str, message: impl Into<String>) -> Self {
        Self::new(part, Verdict::Wrong, message)
    }
    pub fn fine(part: &'static str, message: impl Into<String>) -> Self {
        Self::new(part, Verdict::Fine, message)
    }
    pub fn warning(part: &'static str, message: impl Into<String>) -> Self {
        Self::new(part, Verdict::Warning, message)
    }
}
