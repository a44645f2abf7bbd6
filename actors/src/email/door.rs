//! How e-mails to people outside are handed over.
use entities::ids::EmailId;
use runtime::{job::Running, permits::Permits};
use std::path::PathBuf;

/// How e-mails to people outside are handed over.
pub struct Emails {
    /// Where test keys' messages become files; `None`: they are kept nowhere.
    pub sandbox_folder: Option<PathBuf>,
    /// Messages that are being handed over.
    pub running: Running<EmailId>,
    pub permits: Permits,
}

/// Talks with the mail server at once.
const AT_ONCE: usize = 16;

impl Emails {
    pub fn new(sandbox_folder: Option<PathBuf>) -> Self {
        Emails {
            sandbox_folder,
            running: Running::default(),
            permits: Permits::new(AT_ONCE),
        }
    }
}
