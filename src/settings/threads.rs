//! How many threads the service has: by themselves as the machine has cores.
use super::{
    Settings,
    check::{BadSetting, within},
};
use std::thread::available_parallelism;

/// Of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Answer requests.
    pub http: usize,
    /// Run the actors, each of which lives on one of them.
    pub actors: usize,
    /// Drive the database, deliveries and calls.
    pub io: usize,
}

/// More than any machine's cores, and each takes memory.
const MOST: usize = 256;

pub(super) fn validate(settings: &Settings) -> Result<(), BadSetting> {
    within("http_threads", settings.http_threads, 0..=MOST)?;
    within("actor_threads", settings.actor_threads, 0..=MOST)?;
    within("io_threads", settings.io_threads, 0..=MOST)?;
    Ok(())
}

impl Settings {
    pub fn threads(&self) -> ThreadCounts {
        self.threads_on(available_parallelism().map_or(2, usize::from))
    }

    fn threads_on(&self, cores: usize) -> ThreadCounts {
        let or = |wanted: usize, by_cores: usize| if wanted == 0 { by_cores } else { wanted };
        ThreadCounts {
            // More than there are cores: whoever keeps one busy with megabytes that nobody wants is one thread of many to the
            // system, which shares the cores out evenly.
            http: or(self.http_threads, (cores * 4).min(32)),
            // Two at least: what one does without a pause is not everybody's.
            actors: or(self.actor_threads, cores.clamp(2, 16)),
            io: or(self.io_threads, cores.clamp(2, 16)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(flags: &[(&str, String)], cores: usize) -> ThreadCounts {
        let all = [("dev", "true".to_owned())].into_iter().chain(flags.iter().cloned());
        Settings::load(None, &all.collect::<Vec<_>>())
            .unwrap()
            .threads_on(cores)
    }

    #[test]
    fn threads_are_as_many_as_the_cores_want_or_as_was_said() {
        let count = |http, actors, io| ThreadCounts { http, actors, io };
        assert_eq!(counts(&[], 1), count(4, 2, 2));
        assert_eq!(counts(&[], 2), count(8, 2, 2));
        assert_eq!(counts(&[], 64), count(32, 16, 16));
        let said = ["http_threads", "actor_threads", "io_threads"].map(|name| (name, "8".to_owned()));
        assert_eq!(counts(&said, 2), count(8, 8, 8));
    }
}
