//! Backups and restores that were killed, or are still at work.
use crate::{
    process::{Place, json_of, on_disk, stderr, terminate},
    world::Backend,
};

/// What was killed, or is still at work, is in nobody's way, and nothing of it is taken for somebody else's.
#[test]
fn what_broke_off_is_in_nobodys_way() {
    on_disk(Backend::Sqlite, async |place: Place| {
        let mut serving = place.serve(&[]);
        terminate(&mut serving);
        let at = |name: &str| place.folder.path().join(name);
        let named = |name: &str| at(name).to_str().unwrap().to_owned();
        // Another backup into the same file is at work.
        std::fs::write(at("backup.partial"), "half").unwrap();
        let refused = place.run(&["backup", &named("backup"), "--without-recordings"]);
        assert!(
            stderr(&refused).contains("backup.partial is there"),
            "{}",
            stderr(&refused)
        );
        assert_eq!(std::fs::read(at("backup.partial")).unwrap(), b"half");
        assert!(!at("backup.database").exists() && !at("backup").exists());
        std::fs::remove_file(at("backup.partial")).unwrap();
        let made = place.run(&["backup", &named("backup"), "--without-recordings"]);
        assert!(made.status.success(), "{}", stderr(&made));
        let left: Vec<_> = std::fs::read_dir(place.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name.to_str().unwrap().starts_with("backup"))
            .collect();
        assert_eq!(left, ["backup"], "no part of it is left");

        // A file that would hold itself.
        let recordings = at("callboard-recordings");
        std::fs::create_dir_all(&recordings).unwrap();
        let within = recordings.join("backup").to_str().unwrap().to_owned();
        let refused = place.run(&["backup", &within]);
        assert!(stderr(&refused).contains("would hold itself"), "{}", stderr(&refused));

        let url = format!("sqlite://{}", named("other.db"));
        let restore = || {
            let mut command = place.command(&["restore", &named("backup"), "--as-of", "now"]);
            command.env("CALLBOARD_DATABASE_URL", &url).output().unwrap()
        };
        // Another restore is at work.
        std::fs::write(at("other.db.restoring"), "half").unwrap();
        assert!(stderr(&restore()).contains("other.db.restoring is there"));
        assert_eq!(std::fs::read(at("other.db.restoring")).unwrap(), b"half");
        // It was killed, and its log is not read as this one's.
        std::fs::remove_file(at("other.db.restoring")).unwrap();
        std::fs::copy(at("backup"), at("other.db.restoring-wal")).unwrap();
        let restored = restore();
        assert!(restored.status.success(), "{}", stderr(&restored));
        assert!(
            at("other.db").exists() && !at("other.db.restoring").exists() && !at("other.db.restoring-wal").exists()
        );
        let mut command = place.command(&["--json", "dispatch", "show"]);
        let shown = command.env("CALLBOARD_DATABASE_URL", &url).output().unwrap();
        assert_eq!(json_of(&shown)["paused"], true);
    });
}
