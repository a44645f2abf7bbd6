//! The secret key.
use super::{
    Settings,
    check::{BadSetting, list},
};
use entities::db::Location;
use runtime::keyring::Keyring;
use std::path::{Path, PathBuf};

impl Settings {
    /// The keys that seal secrets. In `--dev` one is made beside the database at the first start.
    pub fn keyring(&self) -> Result<Keyring, BadSetting> {
        match self.keyring_so_far()? {
            Some(keyring) => Ok(keyring),
            None => self.keyring_of(&self.make_dev_key()?),
        }
    }

    /// The same, for whoever only looks. `None`: the first start in `--dev` makes the key.
    pub fn keyring_so_far(&self) -> Result<Option<Keyring>, BadSetting> {
        let current = if let Some(key) = self.secret_key.given() {
            Some(key.to_owned())
        } else if self.dev {
            self.dev_key()?
        } else {
            return Err(BadSetting(
                "secret_key: is not set. Make one with `openssl rand -base64 32`, put it into CALLBOARD_SECRET_KEY and keep it safe: \
                 without it stored secrets cannot be read. (With --dev one is made beside the database.)"
                    .into(),
            ));
        };
        current.map(|key| self.keyring_of(&key)).transpose()
    }

    fn keyring_of(&self, current: &str) -> Result<Keyring, BadSetting> {
        let previous: Vec<String> = list(self.secret_keys_previous.expose()).map(str::to_owned).collect();
        Keyring::new(current, &previous).map_err(|why| BadSetting(format!("secret_key: {why}")))
    }

    /// `None`: there is none yet.
    fn dev_key(&self) -> Result<Option<String>, BadSetting> {
        let path = self.dev_key_file()?;
        match std::fs::read_to_string(&path) {
            Ok(key) => Ok(Some(key.trim().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(cannot("read", &path, &error)),
        }
    }

    fn make_dev_key(&self) -> Result<String, BadSetting> {
        let (path, key) = (self.dev_key_file()?, Keyring::generate());
        write_private(&path, &key).map_err(|error| cannot("write", &path, &error))?;
        Ok(key)
    }

    fn dev_key_file(&self) -> Result<PathBuf, BadSetting> {
        Ok(match self.location()? {
            Location::Sqlite(path) => path.with_extension("secret_key"),
            Location::Postgres(_) => PathBuf::from("callboard.secret_key"),
        })
    }
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> BadSetting {
    BadSetting(format!("secret_key: cannot {what} {} ({error})", path.display()))
}

/// Readable by its owner only.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{text}")
}
