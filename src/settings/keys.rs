//! The secret key.
use super::{
    Settings,
    check::{BadSetting, list},
};
use entities::db::Location;
use runtime::keyring::Keyring;
use std::path::PathBuf;

impl Settings {
    /// The keys that seal secrets. In `--dev` one is made beside the database at the first start.
    pub fn keyring(&self) -> Result<Keyring, BadSetting> {
        let current = if let Some(key) = self.secret_key.given() {
            key.to_owned()
        } else if self.dev {
            self.dev_key()?
        } else {
            return Err(BadSetting(
                "secret_key: is not set. Make one with `openssl rand -base64 32`, put it into CALLBOARD_SECRET_KEY and keep it safe: \
                 without it stored secrets cannot be read. (With --dev one is made beside the database.)"
                    .into(),
            ));
        };
        let previous: Vec<String> = list(self.secret_keys_previous.expose()).map(str::to_owned).collect();
        Keyring::new(&current, &previous).map_err(|why| BadSetting(format!("secret_key: {why}")))
    }

    pub(super) fn dev_key(&self) -> Result<String, BadSetting> {
        let path = match self.location()? {
            Location::Sqlite(path) => path.with_extension("secret_key"),
            Location::Postgres(_) => PathBuf::from("callboard.secret_key"),
        };
        let cannot = |what: &str, error: std::io::Error| {
            BadSetting(format!("secret_key: cannot {what} {} ({error})", path.display()))
        };
        match std::fs::read_to_string(&path) {
            Ok(key) => Ok(key.trim().to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let key = Keyring::generate();
                write_private(&path, &key).map_err(|error| cannot("write", error))?;
                Ok(key)
            }
            Err(error) => Err(cannot("read", error)),
        }
    }
}

/// Readable by its owner only.
fn write_private(path: &std::path::Path, text: &str) -> std::io::Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{text}")
}
