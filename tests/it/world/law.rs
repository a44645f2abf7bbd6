//! The rules of calling, in tests that are about something else.
use rules::law;
use std::{path::PathBuf, sync::LazyLock};

/// The operator's file of a service whose tests ask for no consent, no hours of a country and no opening: each rule that can be
/// overridden is. Whoever tests the law starts without it.
pub fn set_aside() -> &'static str {
    static FILE: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("law.toml");
        let rules = law::pack().rules.iter().filter(|rule| !rule.is_firm);
        let overrides = rules.map(|rule| {
            format!(
                "[[override]]\nrule = \"{}\"\nreason = \"this test is about something else\"\napproved_by = \"the tests\"\n\n",
                rule.id
            )
        });
        std::fs::write(&path, overrides.collect::<String>()).unwrap();
        (folder, path)
    });
    FILE.1.to_str().unwrap()
}
