//! The law packs that this program knows: the files of `law/`, read once. Each released version stays, so that an old attempt is judged
//! by the rules of its day: a new version gets a folder of its own.
use super::{
    holidays::{self, Holidays},
    read::{self, Groups, LawError},
    rule::LawRule,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};
use toml::Table;

/// The rules of many places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pack {
    pub version: String,
    /// In which the texts of disclosures exist: the first part of a BCP 47 tag.
    pub languages: BTreeSet<String>,
    pub groups: Groups,
    /// In the order of the files.
    pub rules: Vec<LawRule>,
    pub holidays: BTreeMap<String, Holidays>,
    /// As they are written, by id: what an operator's file leaves out is found here.
    pub(super) tables: BTreeMap<String, Table>,
}

/// What a pack is read from: files by name.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    pub pack: &'a str,
    pub holidays: &'a str,
    pub rules: &'a [(&'a str, &'a str)],
}

const CURRENT: Texts<'static> = Texts {
    pack: include_str!("../../law/pack.toml"),
    holidays: include_str!("../../law/holidays.toml"),
    rules: &[
        ("everywhere.toml", include_str!("../../law/everywhere.toml")),
        ("us.toml", include_str!("../../law/us.toml")),
        ("us_states.toml", include_str!("../../law/us_states.toml")),
        ("canada.toml", include_str!("../../law/canada.toml")),
        ("europe.toml", include_str!("../../law/europe.toml")),
        ("de.toml", include_str!("../../law/de.toml")),
        ("fr.toml", include_str!("../../law/fr.toml")),
        ("es.toml", include_str!("../../law/es.toml")),
        ("it.toml", include_str!("../../law/it.toml")),
        ("nl.toml", include_str!("../../law/nl.toml")),
        ("uk.toml", include_str!("../../law/uk.toml")),
        ("au.toml", include_str!("../../law/au.toml")),
        ("in.toml", include_str!("../../law/in.toml")),
    ],
};

/// A pack that is read when it is first asked for.
type ReadOnce = LazyLock<Result<Pack, LawError>>;

static PACK: ReadOnce = LazyLock::new(|| Pack::read(CURRENT));
/// Every pack that was ever released, and the newest.
static KNOWN: &[&ReadOnce] = &[&PACK];
/// No rule, so all is closed.
static NOTHING: LazyLock<Pack> = LazyLock::new(Pack::default);

/// The newest pack. One that does not parse closes everything; [`check`] says at the start what is wrong with it.
pub fn pack() -> &'static Pack {
    match &*PACK {
        Ok(pack) => pack,
        Err(_) => &NOTHING,
    }
}

/// Does the newest pack parse?
pub fn check() -> Result<(), LawError> {
    match &*PACK {
        Ok(_) => Ok(()),
        Err(error) => Err(error.clone()),
    }
}

/// The pack by which an attempt was judged.
pub fn of_version(version: &str) -> Option<&'static Pack> {
    let mut known = KNOWN.iter().filter_map(|pack| LazyLock::force(pack).as_ref().ok());
    known.find(|pack| pack.version == version)
}

impl Pack {
    pub fn read(texts: Texts<'_>) -> Result<Self, LawError> {
        let preface = read::preface("pack.toml", texts.pack)?;
        let mut pack = Pack {
            version: preface.version,
            languages: preface.languages,
            groups: preface.groups,
            holidays: holidays::read("holidays.toml", texts.holidays)?,
            ..Pack::default()
        };
        for (file, text) in texts.rules {
            for table in read::tables(file, text)? {
                pack.add(file, table)?;
            }
        }
        Ok(pack)
    }

    pub fn rule(&self, id: &str) -> Option<&LawRule> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// Can what must be said be said in this language?
    pub fn speaks(&self, language: &str) -> bool {
        let primary = language.split(['-', '_']).next().unwrap_or_default();
        self.languages.contains(primary) || self.languages.contains(&primary.to_ascii_lowercase())
    }

    fn add(&mut self, file: &str, table: Table) -> Result<(), LawError> {
        let rule = read::rule(file, table.clone(), &self.groups)?;
        if let Some(flaw) = super::lint::of_rule(&rule, self) {
            return Err(flaw.in_file(file, &rule.id));
        }
        if self.tables.insert(rule.id.clone(), table).is_some() {
            return Err(LawError::of_rule(file, &rule.id, "id", "stands in the pack twice"));
        }
        self.rules.push(rule);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256;

    /// Each pack of `KNOWN`: its version, SHA-256 over its files in their order, and what it is read from.
    const VERSIONS: &[(&str, &str, Texts<'static>)] = &[(
        "2026-12-01.1",
        "5eb8f32c3626be47a22bd5b35734b8b2fcf6851ab204e0dd49eca58fdcd3f41e",
        CURRENT,
    )];

    /// A record names a version. Whoever proves it years later must find the rules of that day under that name.
    #[test]
    fn the_rules_of_a_version_never_change() {
        for (version, sha, texts) in VERSIONS {
            let rules = texts.rules.iter().map(|(_, text)| *text);
            let files: String = [texts.pack, texts.holidays].into_iter().chain(rules).collect();
            let found = sha256(files.as_bytes());
            assert_eq!(
                found, *sha,
                "The files of law pack {version} have changed, and records name that version. Give `version` in law/pack.toml a new \
                 value (the day, and behind a dot which of that day), take it over into VERSIONS, run this test again and write there the \
                 digest that it finds. If a release has had {version}, put that one's files into a folder of their own first, and let KNOWN \
                 and VERSIONS go on naming them."
            );
            assert_eq!(of_version(version).map(|pack| pack.version.as_str()), Some(*version));
        }
        let versions: BTreeSet<&str> = VERSIONS.iter().map(|(version, ..)| *version).collect();
        assert_eq!((versions.len(), VERSIONS.len()), (KNOWN.len(), KNOWN.len()));
        assert!(versions.contains(pack().version.as_str()));
    }
}
