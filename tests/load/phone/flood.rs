//! A stranger who calls and calls.
use crate::peers::byte_peer::{request, sdp};
use std::{
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// INVITEs a millisecond.
const AT_ONCE: u32 = 20;

/// It ends by `end`.
pub struct Flood {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Sent>,
}

pub struct Sent {
    pub each_second: f64,
    pub bytes_back: usize,
}

impl Flood {
    /// From an address that is no carrier's.
    pub fn start(to: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.2:0").expect("a port");
        socket.set_nonblocking(true).expect("a setting");
        let over = Arc::<AtomicBool>::default();
        let ended = over.clone();
        let thread = std::thread::spawn(move || {
            let from = socket.local_addr().expect("its address");
            let uri = format!("sip:+12025551000@{to}");
            let invite = request("INVITE", &uri, from, "Content-Type: application/sdp\r\n", &sdp(9));
            let (began, mut sent, mut bytes_back, mut buffer) = (Instant::now(), 0_u32, 0, [0; 2_048]);
            for beat in 1_u32.. {
                if ended.load(Relaxed) {
                    break;
                }
                for _ in 0..AT_ONCE {
                    sent += u32::from(socket.send_to(&invite, to).is_ok());
                }
                while let Ok((length, _)) = socket.recv_from(&mut buffer) {
                    bytes_back += length;
                }
                let due = began + beat * Duration::from_millis(1);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            Sent {
                each_second: f64::from(sent) / began.elapsed().as_secs_f64(),
                bytes_back,
            }
        });
        Flood { over, thread }
    }

    pub fn end(self) -> Sent {
        self.over.store(true, Relaxed);
        self.thread.join().expect("no panic")
    }
}
