//! What was spooled comes back, in its place, and what is torn, full or erased costs only itself.
use super::*;
use crate::recording::vault::S3Options;
use std::{
    io::Read,
    sync::{OnceLock, atomic::AtomicUsize},
};
use tempfile::TempDir;

const NAME: &str = "0197c5c1-0d5e-7cc0-9d3c-0a1b2c3d4e5f/11111111-2222-4333-8444-555555555555.spool";
const SECOND: u64 = 16_000;
const PLENTY: u64 = 100_000_000;

struct Stand {
    folder: TempDir,
    spools: Spools,
}

fn vault(folder: &TempDir, key: u8, previous: &[u8]) -> Vault {
    let url = folder.path().join("vault").display().to_string();
    let previous = previous.iter().map(|key| [*key; 32]).collect();
    Vault::open(&url, S3Options::default(), [key; 32], previous).unwrap()
}

impl Stand {
    fn new(most_bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spools = Spools::start(&folder.path().join("spool"), most_bytes, &vault(&folder, 7, &[])).unwrap();
        Stand { folder, spools }
    }

    fn begin(&self) -> Track {
        self.spools.begin(NAME, 7_200, Box::new(|_| {})).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("spool").join(NAME)
    }

    /// Another process, after this one was killed.
    fn next_process(&self) -> Spools {
        self.next_process_with(PLENTY)
    }

    fn next_process_with(&self, most: u64) -> Spools {
        self.spools.release();
        Spools::start(&self.folder.path().join("spool"), most, &vault(&self.folder, 7, &[])).unwrap()
    }
}

/// So many seconds of one side, each sample of the same value, in pieces of 20 ms.
fn write(track: &Track, side: Side, at: u64, seconds: u64, sample: i16) {
    for nth in 0..seconds * 50 {
        // The thread is given its time: what it has no room for would be missing here.
        while !track.write(side, at + nth * 320, 16_000, &[sample; 320]) {
            std::thread::yield_now();
        }
    }
}

/// Channels, samples a second, and the samples.
async fn read(spools: &Spools, channels: Channels) -> Option<(u16, u32, Vec<i16>)> {
    let made = spools.recording(NAME, channels).await.unwrap()?;
    let (bytes, duration_ms) = (made.wav.bytes(), made.duration_ms);
    let mut file = Vec::new();
    made.wav.into_source().read_to_end(&mut file).unwrap();
    assert_eq!(file.len() as u64, bytes, "as long as was promised");
    let mut wav = hound::WavReader::new(&file[..]).unwrap();
    assert_eq!(u64::from(wav.duration()) * 1_000 / SECOND, duration_ms);
    let samples = wav.samples::<i16>().map(Result::unwrap).collect();
    Some((wav.spec().channels, wav.spec().sample_rate, samples))
}

/// The left one of a recording with two channels, and the right one.
async fn sides(spools: &Spools) -> Option<[Vec<i16>; 2]> {
    let (channels, rate, samples) = read(spools, Channels::Dual).await?;
    assert_eq!((channels, rate), (2, 16_000));
    Some([0, 1].map(|side| samples.iter().skip(side).step_by(2).copied().collect()))
}

/// Where a side is heard: from, to, and how loud.
fn heard(side: &[i16]) -> Vec<(usize, usize, i16)> {
    let mut found: Vec<(usize, usize, i16)> = Vec::new();
    for (at, sample) in side.iter().enumerate().filter(|(_, sample)| **sample != 0) {
        match found.last_mut().filter(|(_, to, value)| *to == at && value == sample) {
            Some((_, to, _)) => *to += 1,
            None => found.push((at, at + 1, *sample)),
        }
    }
    found
}

/// Of spools that nobody writes.
async fn names(spools: &Spools, after: Option<&str>, most: usize) -> Vec<String> {
    let left = spools.left(after.map(str::to_owned), most).await.unwrap();
    left.into_iter().map(|left| left.name).collect()
}

#[tokio::test]
async fn both_sides_come_back_in_their_places_and_nothing_lies_open() {
    let stand = Stand::new(PLENTY);
    let track = stand.begin();
    assert!(stand.spools.begin(NAME, 60, Box::new(|_| {})).is_none(), "once");
    write(&track, Side::Agent, 0, 3, 0x1234);
    // Far apart, and at the same time.
    write(&track, Side::User, 70 * SECOND, 2, 222);
    write(&track, Side::Agent, 71 * SECOND, 1, 333);
    stand.spools.close(NAME).await.unwrap().unwrap();
    let [agent, user] = sides(&stand.spools).await.unwrap();
    assert_eq!((agent.len(), user.len()), (72 * 16_000, 72 * 16_000));
    let seconds = |from: usize, to: usize| (from * 16_000, to * 16_000);
    let (first, second, third) = (seconds(0, 3), seconds(71, 72), seconds(70, 72));
    assert_eq!(heard(&agent), [(first.0, first.1, 0x1234), (second.0, second.1, 333)]);
    assert_eq!(heard(&user), [(third.0, third.1, 222)]);
    let (channels, _, mono) = read(&stand.spools, Channels::Mono).await.unwrap();
    let wanted = [
        (first.0, first.1, 0x1234),
        (70 * 16_000, 71 * 16_000, 222),
        (second.0, second.1, 555),
    ];
    assert_eq!((channels, heard(&mono)), (1, wanted.to_vec()));
    let file = std::fs::read(stand.path()).unwrap();
    assert!(
        !file.windows(4).any(|bytes| bytes == [0x34, 0x12, 0x34, 0x12]),
        "it is sealed"
    );
    assert_eq!(stand.spools.bytes(), file.len() as u64);
}

#[tokio::test]
async fn a_voice_of_another_rate_is_as_long_and_as_loud() {
    let stand = Stand::new(PLENTY);
    let track = stand.begin();
    for nth in 0..100 {
        assert!(track.write(Side::Agent, SECOND + nth * 320, 24_000, &[5_000; 480]));
    }
    stand.spools.close(NAME).await.unwrap().unwrap();
    let [agent, _] = sides(&stand.spools).await.unwrap();
    assert_eq!(agent.len(), 3 * 16_000);
    assert!(agent[..16_000].iter().all(|sample| *sample == 0));
    let middle = &agent[16_100..47_900];
    assert!(middle.iter().all(|sample| (4_750..5_250).contains(sample)));
}

#[tokio::test]
async fn of_a_line_that_was_silent_there_is_silence() {
    let stand = Stand::new(PLENTY);
    drop(stand.begin());
    stand.spools.close(NAME).await.unwrap().unwrap();
    let [agent, user] = sides(&stand.spools).await.unwrap();
    assert!(agent.iter().chain(&user).all(|sample| *sample == 0));
    assert_eq!(stand.spools.close(NAME).await, Ok(Ok(())), "it is nobody's any more");
}

#[test]
fn a_line_is_as_long_as_it_lasted() {
    let line = Line::new(NAME, 10, Box::new(|_| {}));
    let (now, second) = (Instant::now(), std::time::Duration::from_secs(1));
    assert!(line.takes_sound());
    line.end(now + 2 * second);
    line.end(now + 5 * second);
    // It began a moment before.
    let length = line.length();
    assert!(
        (2 * SECOND..3 * SECOND).contains(&length),
        "{length}: the first end counts"
    );
    assert!(!line.takes_sound());
    let longest = Line::new(NAME, 10, Box::new(|_| {}));
    longest.end(now + 60 * second);
    assert_eq!(longest.length(), 10 * SECOND);
}

#[tokio::test]
async fn nothing_is_kept_beyond_the_longest() {
    let stand = Stand::new(PLENTY);
    let track = stand.spools.begin(NAME, 5, Box::new(|_| {})).unwrap();
    write(&track, Side::User, 4 * SECOND, 3, 9);
    stand.spools.close(NAME).await.unwrap().unwrap();
    let [_, user] = sides(&stand.spools).await.unwrap();
    assert_eq!(heard(&user), [(4 * 16_000, 5 * 16_000 + 320, 9)]);
}

/// Killed: what was written is there, and what is torn is cut off.
#[tokio::test]
async fn the_next_process_finds_what_was_written_and_a_torn_end_is_cut_off() {
    let stand = Stand::new(PLENTY);
    let track = stand.begin();
    write(&track, Side::User, 0, 10, 77);
    stand.spools.flush().await.unwrap();
    let next = stand.next_process();
    assert_eq!(names(&next, None, 10).await, [NAME]);
    assert_eq!(
        names(&stand.spools, None, 10).await,
        Vec::<String>::new(),
        "it is still being written"
    );
    let [_, whole] = sides(&next).await.unwrap();
    assert_eq!(heard(&whole), [(0, 160_000, 77)]);

    let file = std::fs::read(stand.path()).unwrap();
    let mut lengths = Vec::new();
    for cut in [
        1,
        15,
        100,
        70_000,
        200_000,
        file.len() - 29,
        file.len() - 28,
        file.len() - 5,
        file.len(),
    ] {
        std::fs::write(stand.path(), &file[..file.len() - cut]).unwrap();
        let left = sides(&next).await.map_or(0, |[_, left]| {
            assert_eq!(heard(&left), [(0, left.len(), 77)], "no gap, and nothing else");
            left.len()
        });
        lengths.push(left);
    }
    assert!(lengths.is_sorted_by(|longer, shorter| longer >= shorter), "{lengths:?}");
    assert!(lengths[0] > 120_000 && lengths[4] > 0, "{lengths:?}");
    assert_eq!(lengths[5..], [0; 4], "nothing of the first chunk is whole");

    // Changed in the middle: from there on nothing is believed.
    let mut changed = file.clone();
    changed[file.len() / 2] ^= 1;
    std::fs::write(stand.path(), &changed).unwrap();
    let [_, left] = sides(&next).await.unwrap();
    assert!((1..100_000).contains(&left.len()), "{}", left.len());
    // Of another session it does not open at all.
    let other = NAME.replace("1111", "9999");
    std::fs::write(stand.folder.path().join("spool").join(&other), &file).unwrap();
    assert!(next.recording(&other, Channels::Dual).await.unwrap().is_none());
}

#[tokio::test]
async fn a_full_folder_fails_the_recording_and_gives_its_room_to_others() {
    // Half of it is for one tenant.
    let stand = Stand::new(400_000);
    let told = Arc::new(AtomicUsize::new(0));
    let counted = told.clone();
    let tell = move |why: Unrecorded| {
        assert_eq!(why, Unrecorded::NoRoom);
        counted.fetch_add(1, Ordering::SeqCst);
    };
    let track = stand.spools.begin(NAME, 7_200, Box::new(tell)).unwrap();
    write(&track, Side::User, 0, 10, 77);
    assert_eq!(stand.spools.close(NAME).await, Ok(Err(Unrecorded::NoRoom)));
    assert_eq!(told.load(Ordering::SeqCst), 1, "once");
    assert!(!stand.path().exists());
    assert_eq!(stand.spools.bytes(), 0);
    assert!(stand.spools.recording(NAME, Channels::Dual).await.unwrap().is_none());

    let other = NAME.replace("1111", "9999");
    let track = stand.spools.begin(&other, 7_200, Box::new(|_| {})).unwrap();
    write(&track, Side::User, 0, 3, 77);
    assert_eq!(stand.spools.close(&other).await, Ok(Ok(())));
}

#[tokio::test]
async fn a_tenant_who_has_half_of_it_fails_alone() {
    let stand = Stand::new(400_000);
    let [second, others] = [NAME.replace("1111", "2222"), NAME.replace("0197c5c1", "0197c5c2")];
    for (name, wanted) in [
        (NAME, Ok(())),
        (second.as_str(), Err(Unrecorded::NoRoom)),
        (others.as_str(), Ok(())),
    ] {
        let track = stand.spools.begin(name, 7_200, Box::new(|_| {})).unwrap();
        write(&track, Side::User, 0, 5, 77);
        assert_eq!(stand.spools.close(name).await, Ok(wanted), "{name}");
    }
    let kept = stand.spools.bytes();
    let next = stand.next_process_with(400_000);
    assert_eq!(next.bytes(), kept);
    let track = next.begin(&second, 7_200, Box::new(|_| {})).unwrap();
    write(&track, Side::User, 0, 5, 77);
    let wanted = Ok(Err(Unrecorded::NoRoom));
    assert_eq!(
        next.close(&second).await,
        wanted,
        "what lies there counts after a restart"
    );
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_to_fails_the_recording() {
    let stand = Stand::new(PLENTY);
    // Where the tenant's folder would be there is a file.
    let tenant = stand.path().parent().unwrap().to_owned();
    std::fs::write(&tenant, "").unwrap();
    let track = stand.begin();
    write(&track, Side::User, 0, 1, 77);
    assert_eq!(stand.spools.close(NAME).await, Ok(Err(Unrecorded::NotWritten)));
}

/// A service that has recorded no line before may have no such folder, and none that it can make: it starts all the same.
#[tokio::test]
async fn without_a_folder_every_recording_fails_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("spool");
    std::fs::write(&place, "a file").unwrap();
    let spools = Spools::start(&place, PLENTY, &vault(&folder, 7, &[])).unwrap();
    assert!(spools.is_off() && !spools.writes());
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = |told: &Arc<Mutex<Vec<Unrecorded>>>| {
        let told = told.clone();
        Box::new(move |why| told.lock().unwrap().push(why))
    };
    assert!(spools.begin(NAME, 60, tell(&told)).is_none());
    assert!(spools.begin(NAME, 60, tell(&told)).is_none());
    assert_eq!(*told.lock().unwrap(), [Unrecorded::NotWritten], "once");
    assert_eq!(spools.close(NAME).await, Ok(Err(Unrecorded::NotWritten)));
    assert_eq!((spools.erase(NAME).await, spools.flush().await), (Ok(()), Ok(())));
    assert_eq!(spools.bytes(), 0);
}

/// Whoever opens a pipe to write waits for one who reads, as for a disk that hangs.
#[cfg(unix)]
#[test]
fn a_disk_that_hangs_does_not_keep_the_service_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path().join(".lock"))
        .status();
    assert!(made.unwrap().success());
    let opened = folder::open(folder.path(), Duration::from_millis(200));
    assert!(matches!(opened, Err(Refused::Unusable(why)) if why.contains("has not answered")));
}

#[tokio::test]
async fn a_folder_serves_one_process_at_a_time() {
    let stand = Stand::new(PLENTY);
    let again = || {
        Spools::start(
            &stand.folder.path().join("spool"),
            PLENTY,
            &vault(&stand.folder, 7, &[]),
        )
    };
    let refused = again().err().unwrap();
    assert!(refused.contains("in use by another Callboard process"), "{refused}");
    stand.spools.release();
    assert!(again().unwrap().writes());
    drop(again());
    assert!(again().is_ok(), "it is free when its process is gone");
}

/// A bug that panics on one line: the others are recorded.
#[tokio::test]
async fn a_panic_costs_one_line() {
    let stand = Stand::new(400_000);
    let tell = |why: Unrecorded| assert_eq!(why, Unrecorded::NotWritten, "on purpose");
    let track = stand.spools.begin(NAME, 7_200, Box::new(tell)).unwrap();
    write(&track, Side::User, 0, 10, 77);
    assert_eq!(stand.spools.close(NAME).await, Ok(Err(Unrecorded::NoRoom)));
    assert!(stand.spools.writes());
    let other = NAME.replace("1111", "9999");
    let track = stand.spools.begin(&other, 7_200, Box::new(|_| {})).unwrap();
    write(&track, Side::User, 0, 3, 77);
    assert_eq!(stand.spools.close(&other).await, Ok(Ok(())));
}

#[test]
fn when_the_thread_is_gone_that_is_known() {
    let writes = Arc::new(AtomicBool::new(true));
    let alive = Alive(writes.clone());
    let ended = std::thread::spawn(move || {
        let _alive = alive;
        panic!("on purpose");
    });
    assert!(ended.join().is_err());
    assert!(!writes.load(Ordering::Acquire));
}

/// A disk that hangs: the thread takes nothing more from its inbox.
#[tokio::test]
async fn whoever_asks_a_disk_that_hangs_is_not_kept_waiting() {
    let stand = Stand::new(PLENTY);
    let (to, inbox) = mpsc::sync_channel(1);
    let spools = Spools(Arc::new(Shared {
        folder: stand.folder.path().join("spool"),
        vault: vault(&stand.folder, 7, &[]),
        to,
        open: Mutex::default(),
        used: Arc::default(),
        writes: Arc::new(AtomicBool::new(true)),
        is_off: false,
        lock: None,
        readers: Arc::new(Semaphore::new(1)),
        patience: Duration::from_millis(200),
    }));
    drop(spools.begin(NAME, 7_200, Box::new(|_| {})).unwrap());
    for _ in 0..2 {
        let failed = spools.close(NAME).await.unwrap_err();
        assert!(failed.contains("has not answered"), "{failed}");
    }
    assert!(spools.flush().await.is_err() && spools.erase(NAME).await.is_err());
    // What reads hangs too: others do not wait behind it.
    let stuck = spools.0.readers.clone().acquire_owned().await.unwrap();
    assert!(spools.left(None, 10).await.is_err());
    assert!(spools.recording(NAME, Channels::Dual).await.is_err());
    drop(stuck);
    assert_eq!(names(&spools, None, 10).await, Vec::<String>::new());
    drop(inbox);
}

#[tokio::test]
async fn what_is_left_is_looked_at_in_parts() {
    let stand = Stand::new(PLENTY);
    let all = ["1", "2", "3", "4", "5"].map(|nth| NAME.replace("1111", &nth.repeat(4)));
    std::fs::create_dir(stand.path().parent().unwrap()).unwrap();
    for name in &all {
        std::fs::write(stand.folder.path().join("spool").join(name), "").unwrap();
    }
    assert_eq!(names(&stand.spools, None, 2).await, all[..2]);
    assert_eq!(names(&stand.spools, Some(&all[1]), 2).await, all[2..4]);
    assert_eq!(names(&stand.spools, Some(&all[3]), 2).await, all[4..]);
    assert_eq!(names(&stand.spools, Some(&all[4]), 2).await, Vec::<String>::new());
    let left = stand.spools.left(None, 1).await.unwrap().remove(0);
    assert!(left.age < Duration::from_secs(600), "{left:?}");
}

#[test]
fn a_failure_can_be_read_when_it_is_told() {
    let known: Arc<OnceLock<Arc<Line>>> = Arc::default();
    let (its, told) = (known.clone(), Arc::new(Mutex::new(Vec::new())));
    let heard = told.clone();
    let tell = move |_: Unrecorded| heard.lock().unwrap().push(its.get().unwrap().failure());
    let line = Arc::new(Line::new(NAME, 10, Box::new(tell)));
    assert!(known.set(line.clone()).is_ok());
    line.fail(Unrecorded::NoRoom);
    line.fail(Unrecorded::NotWritten);
    assert_eq!(*told.lock().unwrap(), [Some(Unrecorded::NoRoom)], "once, the first");
    assert_eq!(line.failure(), Some(Unrecorded::NoRoom));
}

#[tokio::test]
async fn what_is_erased_is_gone_while_it_is_written_and_later() {
    let stand = Stand::new(PLENTY);
    let track = stand.begin();
    write(&track, Side::User, 0, 5, 77);
    stand.spools.flush().await.unwrap();
    assert!(stand.path().exists());
    stand.spools.erase(NAME).await.unwrap();
    write(&track, Side::User, 5 * SECOND, 5, 77);
    stand.spools.flush().await.unwrap();
    assert!(!stand.path().exists(), "nothing more is written");
    assert_eq!((stand.spools.close(NAME).await, stand.spools.bytes()), (Ok(Ok(())), 0));
    // One that another process has left.
    let track = stand.begin();
    write(&track, Side::User, 0, 5, 77);
    stand.spools.close(NAME).await.unwrap().unwrap();
    let next = stand.next_process();
    assert!(next.bytes() > 100_000);
    next.erase(NAME).await.unwrap();
    assert_eq!((stand.path().exists(), next.bytes()), (false, 0));
    assert_eq!(next.erase(NAME).await, Ok(()), "twice is as good as once");
}

#[tokio::test]
async fn what_a_replaced_key_has_sealed_opens_with_it_and_is_sealed_anew() {
    let stand = Stand::new(PLENTY);
    write(&stand.begin(), Side::User, 0, 5, 77);
    stand.spools.close(NAME).await.unwrap().unwrap();
    let folder = stand.folder.path().join("spool");
    stand.spools.release();
    let with = |key, previous: &[u8]| {
        let vault = vault(&stand.folder, key, previous);
        let spools = Spools::start(&folder, PLENTY, &vault).unwrap();
        spools.release();
        (spools, vault)
    };
    let (new, _) = with(8, &[]);
    let unknown = new.recording(NAME, Channels::Dual).await.err().unwrap();
    assert!(unknown.contains("which is not configured"), "{unknown}");
    let (both, vault) = with(8, &[7]);
    assert!(sides(&both).await.is_some());
    // One that is damaged keeps no other from being sealed anew.
    let damaged = NAME.replace("1111", "0000");
    std::fs::write(folder.join(&damaged), [1_u8; 64]).unwrap();
    let resealed = reseal(&folder, &vault).unwrap();
    assert_eq!((resealed.done, resealed.left.len()), (1, 1));
    assert!(resealed.left[0].0 == damaged && resealed.left[0].1.contains("is not a sealed spool"));
    let [_, user] = sides(&new).await.unwrap();
    assert_eq!(heard(&user), [(0, 80_000, 77)]);
}

#[test]
fn who_hands_sound_over_never_waits() {
    let (to, inbox) = mpsc::sync_channel(2);
    let line = Arc::new(Line::new(NAME, 7_200, Box::new(|_| {})));
    let track = Track { line: line.clone(), to };
    let taken = [0, 1, 2, 3].map(|nth| track.write(Side::Agent, nth * 320, 16_000, &[1; 320]));
    assert_eq!(taken, [true, true, false, false]);
    assert!(matches!(inbox.recv(), Ok(Message::Sound { at: 0, .. })));
    assert!(
        track.write(Side::Agent, 4 * 320, 16_000, &[1; 320]),
        "there is room again"
    );
    line.is_over.store(true, Ordering::Relaxed);
    assert!(
        track.write(Side::Agent, 5 * 320, 16_000, &[1; 320]),
        "nobody wants it, and nothing is missing"
    );
    assert_eq!(inbox.try_iter().count(), 2);
}
