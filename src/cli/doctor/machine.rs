//! This machine: its disks, ports and limits.
use super::{Findings, instance};
use crate::settings::Settings;
use entities::db::Location;
use rustix::fs::{Access, access};
use std::{
    io::ErrorKind,
    net::{IpAddr, SocketAddr, TcpListener, UdpSocket},
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

/// Files that may be open: of 10,000 connections, and those to receivers.
const FILES: u64 = 65_536;
/// Less is a warning; and less than that a failure.
const ROOM: u64 = 2 << 30;
const NO_ROOM: u64 = 100 << 20;

/// Answers which instance serves at `bind`, if any.
pub(super) async fn look(settings: &Settings, found: &mut Findings) -> Option<String> {
    disks(settings, found);
    let files = rlimit::Resource::NOFILE.get();
    limits(files.map(|(_, hard)| hard), found);
    voice(settings, found);
    let serving = match settings.socket_address() {
        Ok(address) => answers(address).await,
        Err(_) => None,
    };
    ports(settings, serving.is_some(), found);
    if let Ok(Some(sip)) = settings.sip() {
        sound(sip.bind.ip(), &sip.rtp_ports, serving.is_some(), found);
    }
    serving
}

/// The Callboard that answers there.
#[expect(clippy::disallowed_methods, reason = "this machine's own address")]
async fn answers(mut address: SocketAddr) -> Option<String> {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(3))
        .no_proxy()
        .build()
        .ok()?;
    let answer = client.get(format!("http://{address}/healthz")).send().await;
    instance::named(answer.ok()?).await
}

/// The folder in which it is, or will be made.
fn existing(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = whole.ancestors().find(|folder| folder.exists());
    there.unwrap_or(Path::new("/")).to_owned()
}

fn disks(settings: &Settings, found: &mut Findings) {
    let mut places = vec![("recordings_spool", PathBuf::from(&settings.recordings_spool))];
    if !settings.recordings.contains("://") {
        places.push(("recordings", PathBuf::from(&settings.recordings)));
    }
    if let Ok(Location::Sqlite(file)) = settings.location() {
        if file.exists()
            && let Err(error) = access(&file, Access::WRITE_OK)
        {
            not_ours("disk, database_url", &file, error, found);
        }
        // Its log is made beside it.
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        places.insert(0, ("database_url", folder.unwrap_or(Path::new(".")).to_owned()));
    }
    for (name, path) in places {
        disk(&format!("disk, {name}"), &existing(&path), found);
    }
}

/// A folder that files and folders are made in.
fn disk(what: &str, folder: &Path, found: &mut Findings) {
    let shown = folder.display();
    let advice = "make room, or name a folder on another disk";
    if !folder.is_dir() {
        found.failure(what, format!("{shown} is not a folder"), "name one, or move that away");
        return;
    }
    match rustix::fs::statvfs(folder) {
        Err(error) => found.failure(what, format!("{shown} cannot be looked at: {error}"), advice),
        Ok(disk) if disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) => {
            found.failure(
                what,
                format!("{shown} is read-only"),
                "name a folder that can be written to",
            );
        }
        Ok(disk) => {
            if let Err(error) = access(folder, Access::WRITE_OK | Access::EXEC_OK) {
                return not_ours(what, folder, error, found);
            }
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let said = format!("{} free at {shown}", bytes(free));
            match free {
                ..NO_ROOM => found.failure(what, said, advice),
                NO_ROOM..ROOM => found.warning(what, said, advice),
                _ => found.ok(what, said),
            }
        }
    }
}

fn not_ours(what: &str, place: &Path, error: rustix::io::Errno, found: &mut Findings) {
    found.failure(
        what,
        format!("{} may not be written to by this user: {error}", place.display()),
        "give it to the service's user, as whom doctor has to run, or name another",
    );
}

fn bytes(count: u64) -> String {
    match count {
        0..1_000_000_000 => format!("{} MB", count / 1_000_000),
        _ => format!("{} GB", count / 1_000_000_000),
    }
}

fn limits(hard: std::io::Result<u64>, found: &mut Findings) {
    match hard {
        Ok(hard) if hard < FILES => found.warning(
            "open files",
            format!("{hard} at most: under load, connections are refused"),
            format!("raise the hard limit to {FILES}, with LimitNOFILE or ulimit -Hn"),
        ),
        Ok(hard) => found.ok("open files", format!("{hard} at most")),
        Err(error) => found.warning(
            "open files",
            format!("the limit cannot be read: {error}"),
            "see `ulimit -Hn`",
        ),
    }
}

fn voice(settings: &Settings, found: &mut Findings) {
    let advice = "install espeak-ng, or set speech_provider";
    match settings.voice() {
        Err(why) => found.failure("voice", why.to_string(), advice),
        Ok(voice) if voice.has_words() => found.ok("voice", "this machine can speak"),
        Ok(_) if settings.speech_provider.is_empty() => {
            found.warning("voice", "this machine cannot speak: agents are beeps", advice);
        }
        Ok(_) => found.ok("voice", "a speech provider speaks; this machine cannot take over"),
    }
}

/// Who has it: nobody, so that the service could.
fn ports(settings: &Settings, is_serving: bool, found: &mut Findings) {
    let (mut tcp, mut udp) = (Vec::new(), Vec::new());
    tcp.extend(settings.socket_address().ok().map(|at| ("bind", at)));
    tcp.extend(settings.metrics_address().ok().flatten().map(|at| ("metrics_bind", at)));
    tcp.extend(settings.node().ok().flatten().map(|node| ("node_bind", node.bind)));
    if let Ok(Some(sip)) = settings.sip() {
        tcp.push(("sip_bind", sip.bind));
        udp.push(("sip_bind", sip.bind));
        tcp.extend(sip.tls.map(|tls| ("sip_tls_bind", tls.bind)));
    }
    udp.extend(settings.media().ok().map(|media| ("media_bind", media.bind)));
    let tcp = tcp
        .into_iter()
        .map(|(name, at)| (name, at, "TCP", TcpListener::bind(at).map(drop)));
    let udp = udp
        .into_iter()
        .map(|(name, at)| (name, at, "UDP", UdpSocket::bind(at).map(drop)));
    for (name, at, kind, tried) in tcp.chain(udp).filter(|(_, at, ..)| at.port() != 0) {
        let what = format!("port, {name}");
        match tried {
            Ok(()) if is_serving => found.warning(
                &what,
                format!("{at} ({kind}) is free, though the service runs"),
                "it runs with other settings than these: give doctor the same file and environment",
            ),
            Ok(()) => found.ok(&what, format!("{at} ({kind}) is free")),
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_serving => {
                found.ok(&what, format!("{at} ({kind}) is in use, and the service runs"));
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => found.failure(
                &what,
                format!("another program uses {at} ({kind})"),
                format!("stop it, or set {name} to another port"),
            ),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => found.failure(
                &what,
                format!("{at} ({kind}) may not be opened by this user"),
                "use a port from 1024 up, or give the service CAP_NET_BIND_SERVICE",
            ),
            Err(error) => found.failure(
                &what,
                format!("{at} ({kind}) cannot be opened: {error}"),
                "name an address of this machine",
            ),
        }
    }
}

/// The sound of calls: the first port and the last are tried, for all of them are thousands. Whatever is taken is passed over.
fn sound(ip: IpAddr, ports: &RangeInclusive<u16>, is_serving: bool, found: &mut Findings) {
    let what = "ports, rtp_ports";
    let ends = [*ports.start(), *ports.end()];
    let shown = format!("{}-{} (UDP)", ends[0], ends[1]);
    let mut taken = Vec::new();
    for port in ends {
        match UdpSocket::bind((ip, port)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AddrInUse => taken.push(port.to_string()),
            Err(error) => {
                return found.failure(
                    what,
                    format!("{ip}:{port} (UDP) cannot be opened: {error}"),
                    "name an address of this machine in sip_bind",
                );
            }
        }
    }
    let taken = taken.join(" and ");
    match taken.is_empty() {
        true => found.ok(what, format!("of {shown} the first and the last are free")),
        false if is_serving => found.ok(what, format!("of {shown} {taken} in use, and the service runs")),
        false => found.warning(
            what,
            format!("another program uses {taken} of {shown}: calls pass over what is taken"),
            "give rtp_ports a range of its own, with two ports for each call at once",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::Verdict;

    #[test]
    fn a_port_of_another_program_is_a_failure() {
        let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let settings = Settings::load(None, &[("bind", address), ("media_bind", "127.0.0.1:0".into())]).unwrap();
        let verdicts = |is_serving| {
            let mut found = Findings::default();
            ports(&settings, is_serving, &mut found);
            found.0.iter().map(|finding| finding.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(false), [Verdict::Failure]);
        assert_eq!(verdicts(true), [Verdict::Ok]);
        drop(taken);
        assert_eq!(verdicts(false), [Verdict::Ok]);
        assert_eq!(verdicts(true), [Verdict::Warning]);
    }

    #[test]
    fn the_disk_is_that_of_the_nearest_folder_that_there_is() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(existing(&folder.path().join("not/yet/callboard.db")), folder.path());
        let database_url = format!("sqlite://{}/not/yet.db", folder.path().display());
        let settings = Settings::load(None, &[("database_url", database_url)]).unwrap();
        let mut found = Findings::default();
        disks(&settings, &mut found);
        assert_eq!(found.0.len(), 3);
        assert!(
            found.0[0].said.ends_with(&folder.path().display().to_string()),
            "{found:?}",
            found = found.0
        );
    }

    /// What was found of one place.
    fn found(look: impl FnOnce(&mut Findings)) -> (Verdict, String) {
        let mut found = Findings::default();
        look(&mut found);
        assert_eq!(found.0.len(), 1, "{:?}", found.0);
        let one = found.0.remove(0);
        assert_eq!(one.advice.is_none(), one.verdict == Verdict::Ok, "{one:?}");
        (one.verdict, one.said)
    }

    #[test]
    fn a_disk_without_room_is_a_failure() {
        // A file system that has none.
        let (verdict, said) = found(|found| disk("disk", Path::new("/proc"), found));
        assert_eq!(verdict, Verdict::Failure, "{said}");
        let file = tempfile::NamedTempFile::new().unwrap();
        let within = existing(&file.path().join("callboard-recordings"));
        let (verdict, said) = found(|found| disk("disk", &within, found));
        assert!(
            verdict == Verdict::Failure && said.contains("is not a folder"),
            "{said}"
        );
    }

    #[test]
    fn a_folder_that_is_closed_to_this_user_is_a_failure() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o500)).unwrap();
        let (verdict, said) = found(|found| disk("disk", folder.path(), found));
        // To root nothing is.
        match std::fs::write(folder.path().join("probe"), "") {
            Ok(()) => assert!(!said.contains("may not be written to"), "{said}"),
            Err(_) => assert!(
                verdict == Verdict::Failure && said.contains("may not be written to"),
                "{said}"
            ),
        }
        let (verdict, said) = found(|found| not_ours("disk", folder.path(), rustix::io::Errno::ACCESS, found));
        assert!(verdict == Verdict::Failure && said.contains("by this user"), "{said}");
    }

    #[test]
    fn few_open_files_are_a_warning() {
        let verdict = |hard| found(|found| limits(hard, found)).0;
        assert_eq!(verdict(Ok(FILES)), Verdict::Ok);
        assert_eq!(verdict(Ok(FILES - 1)), Verdict::Warning);
        assert_eq!(verdict(Err(ErrorKind::Unsupported.into())), Verdict::Warning);
    }

    #[test]
    fn ports_of_sound_that_are_taken_are_named() {
        let local = IpAddr::from([127, 0, 0, 1]);
        let taken = UdpSocket::bind((local, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let look = |ip, is_serving| found(|found| sound(ip, &(port..=port), is_serving, found));
        let (verdict, said) = look(local, false);
        assert!(
            verdict == Verdict::Warning && said.contains(&port.to_string()),
            "{said}"
        );
        assert_eq!(look(local, true).0, Verdict::Ok);
        // Of no machine: RFC 5737.
        assert_eq!(look(IpAddr::from([203, 0, 113, 7]), false).0, Verdict::Failure);
    }
}
