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
mod tests {
    use super::*;
    use uuid::Uuid;

    fn day(n: i64) -> Moment {
        Moment::from_millis(n * 86_400_000)
    }

    fn upload(fetched: i64) -> Upload {
        Upload {
            id: Uuid::from_u128(1).into(),
            owner: (Uuid::from_u128(2).into(), Env::Live),
            name: "us_dnc".into(),
            country: Country::US,
            fetched_at: day(fetched),
            area_codes: None,
            by: Some("ann@example.com".into()),
            may_shrink: false,
        }
    }

    fn file(content: &str, numbers: i64) -> File {
        File {
            id: Uuid::from_u128(content.len() as u128).into(),
            content: Content {
                sha256: content.into(),
                key_check: "key".into(),
                has_dates: false,
                area_codes: codes("212"),
            },
            numbers,
        }
    }

    fn codes(text: &str) -> AreaCodes {
        AreaCodes::parse(text).unwrap()
    }

    #[test]
    fn a_file_takes_the_place_of_an_older_one_alone() {
        let (first, change) = upload(10).next(None, &file("a", 100), day(11)).unwrap();
        assert_eq!(
            (first.version, first.fetched_at, change),
            (1, day(10), Change::Replaced)
        );
        assert_eq!(first.area_codes, Some(codes("212")), "those of its numbers");
        for (what, upload, file, expected) in [
            (
                "the same again",
                upload(10),
                file("a", 100),
                Some((1, 10, Change::Nothing)),
            ),
            (
                "the same of an earlier day",
                upload(9),
                file("a", 100),
                Some((1, 10, Change::Nothing)),
            ),
            (
                "the same of a later day",
                upload(12),
                file("a", 100),
                Some((1, 12, Change::Refreshed)),
            ),
            (
                "another of that day",
                upload(10),
                file("bb", 90),
                Some((2, 10, Change::Replaced)),
            ),
            (
                "a later one",
                upload(12),
                file("bb", 50),
                Some((2, 12, Change::Replaced)),
            ),
            ("an older one", upload(9), file("bb", 100), None),
            ("one that was cut off", upload(12), file("bb", 49), None),
            (
                "the same with another key",
                upload(12),
                File {
                    content: Content {
                        key_check: "other".into(),
                        ..file("a", 100).content
                    },
                    ..file("a", 100)
                },
                Some((2, 12, Change::Replaced)),
            ),
            (
                "the same, which covers another area code",
                Upload {
                    area_codes: Some(codes("646")),
                    ..upload(10)
                },
                file("a", 100),
                Some((2, 10, Change::Replaced)),
            ),
            (
                "a small one that is whole",
                Upload {
                    may_shrink: true,
                    ..upload(12)
                },
                file("bb", 1),
                Some((2, 12, Change::Replaced)),
            ),
            (
                "the same, read as another country's",
                Upload {
                    country: "CA".parse().unwrap(),
                    ..upload(12)
                },
                file("a", 100),
                Some((2, 12, Change::Replaced)),
            ),
        ] {
            let found = upload.next(Some(&first), &file, day(13)).ok();
            let found = found.map(|(row, change)| (row.version, row.fetched_at, change));
            let expected = expected.map(|(version, fetched, change)| (version, day(fetched), change));
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn whoever_was_warned_is_warned_anew_of_the_next_file() {
        let (first, _) = upload(10).next(None, &file("a", 100), day(11)).unwrap();
        let warned = Model { warned: 2, ..first };
        let (again, _) = upload(12).next(Some(&warned), &file("a", 100), day(13)).unwrap();
        assert_eq!(again.warned, 0);
        let (same, _) = upload(10).next(Some(&warned), &file("a", 100), day(13)).unwrap();
        assert_eq!(same.warned, 2, "nothing has changed");
    }
}
