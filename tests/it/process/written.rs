//! What a service has written down: what is stored, and its carrier's log.
use super::{Place, pause, stderr};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

impl Place {
    /// All that is stored.
    pub(super) fn dump(&self) -> Vec<Value> {
        let dump = self.run(&["audit", "dump"]);
        assert!(dump.status.success(), "{}", stderr(&dump));
        lines(&String::from_utf8(dump.stdout).unwrap())
    }

    /// Waits until there is nothing to be done about any line, and answers what is stored then.
    pub(super) async fn quiet(&self, is_done: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut dump = Vec::new();
        for _ in 0..1_800 {
            dump = self.dump();
            if dump.iter().all(&is_done) {
                return dump;
            }
            pause(100).await;
        }
        dump.retain(|line| !is_done(line));
        dump.truncate(5);
        panic!("it does not come to rest: {dump:?}");
    }

    /// For `CALLBOARD_SANDBOX_LOG`. It is there from the first start on.
    pub(super) fn carrier_log(&self) -> PathBuf {
        self.folder.path().join("carrier.log")
    }

    /// What its carrier was asked to do, and did.
    pub(super) fn carried(&self) -> Vec<Value> {
        lines(&std::fs::read_to_string(self.carrier_log()).unwrap())
    }
}

pub(super) fn lines(text: &str) -> Vec<Value> {
    // A kill may leave half a line at the end of a log.
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// How many lines say that.
pub(super) fn count(dump: &[Value], name: &str, value: &str) -> usize {
    dump.iter().filter(|line| line[name] == value).count()
}

/// The wall clock's time, as it stands in what is written down.
pub(super) fn millis() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis()
        .try_into()
        .unwrap()
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
