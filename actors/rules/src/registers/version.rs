//! When a file takes the place of the one before it.
use super::known;
use entities::{
    Error, Result,
    ids::{RegisterFileId, RegisterId, TenantId},
    register::{AreaCodes, Model},
    values::{Country, Env, Moment},
};

/// What somebody uploads, but for what stands in it.
#[derive(Clone)]
pub struct Upload {
    /// Of the register, if it is new.
    pub id: RegisterId,
    pub owner: (TenantId, Env),
    pub name: String,
    pub country: Country,
    pub fetched_at: Moment,
    /// Those that the file covers beside those of its numbers, as whoever uploads it says.
    pub area_codes: Option<AreaCodes>,
    /// `None`: the operator.
    pub by: Option<String>,
    /// It may have less than half as many numbers as the file before.
    pub may_shrink: bool,
}

/// What a file holds.
#[derive(Clone, Debug)]
pub struct Content {
    /// Of the file as it was uploaded, in hex.
    pub sha256: String,
    /// Tells the key that its numbers were hashed with from others.
    pub key_check: String,
    pub has_dates: bool,
    /// Those of its numbers.
    pub area_codes: AreaCodes,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct File {
    pub id: RegisterFileId,
    pub content: Content,
    /// Each counted once.
    pub numbers: i64,
}

/// What becomes of the register's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The file is there already, of that day or a later one.
    Nothing,
    /// The file is there already, and was given out anew.
    Refreshed,
    /// It has this file now.
    Replaced,
}

impl Upload {
    /// Is it the file that is there already, read in the same way?
    pub fn is_known(&self, current: &Model, content: &Content) -> bool {
        current.sha256 == content.sha256
            && current.key_check == content.key_check
            && current.country == self.country.to_string()
            && current.area_codes == self.covered(content)
    }

    fn covered(&self, content: &Content) -> Option<AreaCodes> {
        known::covered(&self.name, self.area_codes.as_ref(), &content.area_codes)
    }

    /// A list never goes back to an older one.
    pub fn check_day(&self, current: Option<&Model>, content: &Content) -> Result<()> {
        match current {
            Some(current) if self.fetched_at < current.fetched_at && !self.is_known(current, content) => {
                let why = format!(
                    "the file that is there was given out later, on {}: upload a newer one",
                    current.fetched_at
                );
                Err(Error::invalid("fetched_at", why))
            }
            _ => Ok(()),
        }
    }

    /// The register's row after this file.
    pub fn next(&self, current: Option<&Model>, file: &File, now: Moment) -> Result<(Model, Change)> {
        let content = &file.content;
        self.check_day(current, content)?;
        let Some(current) = current else {
            return Ok((self.first(file, now), Change::Replaced));
        };
        let uploaded = Model {
            fetched_at: self.fetched_at,
            uploaded_at: now,
            uploaded_by: self.by.clone(),
            warned: 0,
            ..current.clone()
        };
        if self.is_known(current, content) {
            return Ok(match self.fetched_at > current.fetched_at {
                true => (uploaded, Change::Refreshed),
                false => (current.clone(), Change::Nothing),
            });
        }
        if !self.may_shrink && file.numbers < current.numbers / 2 {
            let why = format!(
                "the file has {} numbers, and the one that is there {}: it may have been cut off. If it is whole, repeat the request with \
                 allow_shrink=true",
                file.numbers, current.numbers
            );
            return Err(Error::invalid("", why));
        }
        let row = Model {
            country: self.country.to_string(),
            version: current.version + 1,
            file_id: file.id,
            key_check: content.key_check.clone(),
            has_dates: content.has_dates,
            area_codes: self.covered(content),
            numbers: file.numbers,
            sha256: content.sha256.clone(),
            ..uploaded
        };
        Ok((row, Change::Replaced))
    }

    fn first(&self, file: &File, now: Moment) -> Model {
        let content = &file.content;
        Model {
            id: self.id,
            tenant_id: self.owner.0,
            env: self.owner.1,
            name: self.name.clone(),
            country: self.country.to_string(),
            version: 1,
            file_id: file.id,
            key_check: content.key_check.clone(),
            has_dates: content.has_dates,
            area_codes: self.covered(content),
            numbers: file.numbers,
            sha256: content.sha256.clone(),
            fetched_at: self.fetched_at,
            uploaded_at: now,
            uploaded_by: self.by.clone(),
            warned: 0,
            created_at: now,
        }
    }
}

#[cfg(test)]
mod tests;
