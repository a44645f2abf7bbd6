//! This machine: its disks, ports and limits.
use super::Findings;
use crate::settings::Settings;
use entities::db::Location;
use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpListener, UdpSocket},
    path::{Path, PathBuf},
    time::Duration,
};

/// Files that may be open: of 10,000 connections, and those to receivers.
const FILES: u64 = 65_536;
/// Less is a warning; and less than that a failure.
const ROOM: u64 = 2 << 30;
const NO_ROOM: u64 = 100 << 20;

/// Answers whether a service runs at `bind`.
pub(super) async fn look(settings: &Settings, found: &mut Findings) -> bool {
    disks(settings, found);
    limits(found);
    voice(settings, found);
    let is_serving = match settings.socket_address() {
        Ok(address) => answers(address).await,
        Err(_) => false,
    };
    ports(settings, is_serving, found);
    is_serving
}

/// Does a Callboard answer there?
#[expect(clippy::disallowed_methods, reason = "this machine's own address")]
async fn answers(mut address: SocketAddr) -> bool {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(3))
        .no_proxy()
        .build();
    let Ok(client) = client else { return false };
    match client.get(format!("http://{address}/healthz")).send().await {
        Ok(answer) => answer.status().is_success() && answer.headers().contains_key("x-request-id"),
        Err(_) => false,
    }
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
        places.insert(0, ("database_url", file));
    }
    for (name, path) in places {
        let folder = existing(&path);
        let (what, shown) = (format!("disk, {name}"), folder.display());
        let advice = "make room, or name a folder on another disk";
        match rustix::fs::statvfs(&folder) {
            Err(error) => found.failure(&what, format!("{shown} cannot be looked at: {error}"), advice),
            Ok(disk) if disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) => {
                found.failure(
                    &what,
                    format!("{shown} is read-only"),
                    "name a folder that can be written to",
                );
            }
            Ok(disk) => {
                let free = disk.f_bavail.saturating_mul(disk.f_frsize);
                let said = format!("{} free at {shown}", bytes(free));
                match free {
                    ..NO_ROOM => found.failure(&what, said, advice),
                    NO_ROOM..ROOM => found.warning(&what, said, advice),
                    _ => found.ok(&what, said),
                }
            }
        }
    }
}

fn bytes(count: u64) -> String {
    match count {
        0..1_000_000_000 => format!("{} MB", count / 1_000_000),
        _ => format!("{} GB", count / 1_000_000_000),
    }
}

fn limits(found: &mut Findings) {
    match rlimit::Resource::NOFILE.get() {
        Ok((_, hard)) if hard < FILES => found.warning(
            "open files",
            format!("{hard} at most: under load, connections are refused"),
            format!("raise the hard limit to {FILES}, with LimitNOFILE or ulimit -Hn"),
        ),
        Ok((_, hard)) => found.ok("open files", format!("{hard} at most")),
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
}
