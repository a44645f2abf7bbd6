//! Where sound arrives that goes to no real telephone: a socket that writes down every packet, and can send some.
use super::sound::{Sound, linear, loudness, mu_law};
use std::{
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// RTP, version 2, without extensions. (RFC 3550, section 5.1.)
#[derive(Clone, Debug)]
pub struct Packet {
    pub at: Instant,
    pub from: SocketAddr,
    pub payload_type: u8,
    pub is_marked: bool,
    pub sequence: u16,
    pub timestamp: u32,
    pub ssrc: u32,
    pub payload: Vec<u8>,
}

impl Packet {
    fn read(bytes: &[u8], from: SocketAddr) -> Option<Self> {
        let head = bytes.get(..12)?;
        if head[0] != 0x80 {
            return None;
        }
        let number = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        Some(Packet {
            at: Instant::now(),
            from,
            payload_type: head[1] & 0x7f,
            is_marked: head[1] & 0x80 != 0,
            sequence: u16::from_be_bytes([head[2], head[3]]),
            timestamp: number(4),
            ssrc: number(8),
            payload: bytes[12..].to_vec(),
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0x80, self.payload_type | u8::from(self.is_marked) << 7];
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.timestamp.to_be_bytes());
        bytes.extend(self.ssrc.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }

    /// Is anything to be heard in it? Of mu-law alone.
    pub fn is_loud(&self) -> bool {
        let samples: Vec<i16> = self.payload.iter().map(|byte| linear(*byte)).collect();
        self.payload_type == 0 && loudness(&samples) > 300.0
    }
}

/// It listens until it is dropped.
pub struct Ear {
    socket: Arc<UdpSocket>,
    packets: Arc<Mutex<Vec<Packet>>>,
    /// What `sends` has sent, and where to.
    sent: Arc<Mutex<Vec<(Packet, SocketAddr)>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ear {
    pub fn at(address: impl Into<SocketAddr>) -> Self {
        let socket = Arc::new(UdpSocket::bind(address.into()).unwrap());
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (packets, over) = (Arc::<Mutex<Vec<Packet>>>::default(), Arc::<AtomicBool>::default());
        let (listening, kept, ended) = (socket.clone(), packets.clone(), over.clone());
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2_048];
            while !ended.load(Relaxed) {
                if let Ok((length, from)) = listening.recv_from(&mut buffer)
                    && let Some(packet) = Packet::read(&buffer[..length], from)
                {
                    kept.lock().unwrap().push(packet);
                }
            }
        });
        Ear {
            socket,
            packets,
            sent: Arc::default(),
            over,
            thread: Some(thread),
        }
    }

    pub fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    pub fn packets(&self) -> Vec<Packet> {
        self.packets.lock().unwrap().clone()
    }

    /// Sends silence there until it is dropped: who is never heard is taken for gone.
    pub fn breathes(&self, to: SocketAddr) {
        let (socket, over) = (self.socket.clone(), self.over.clone());
        std::thread::spawn(move || {
            let (began, mut packet) = (Instant::now(), packets_of(&Sound::silence(20)).remove(0));
            for n in 1_u32.. {
                if over.load(Relaxed) {
                    return;
                }
                let _ = socket.send_to(&packet.to_bytes(), to);
                packet.sequence = packet.sequence.wrapping_add(1);
                packet.timestamp = packet.timestamp.wrapping_add(160);
                packet.is_marked = false;
                std::thread::sleep((began + n * Duration::from_millis(20)).saturating_duration_since(Instant::now()));
            }
        });
    }

    /// Says this at the pace of speech, 20 ms a packet, after a change of the packets: losses, copies, another order. Returns when
    /// it is said.
    pub async fn says(&self, sound: Sound, to: SocketAddr, change: impl FnOnce(Vec<Packet>) -> Vec<Packet>) {
        self.sends(change(packets_of(&sound)), 20, to).await;
    }

    /// Sends one after the other, so many milliseconds apart.
    pub async fn sends(&self, packets: Vec<Packet>, every_ms: u32, to: SocketAddr) {
        let (socket, sent) = (self.socket.clone(), self.sent.clone());
        let from = socket.local_addr().unwrap();
        let sending = tokio::task::spawn_blocking(move || {
            let began = Instant::now();
            for (n, packet) in (0_u32..).zip(packets) {
                let due = began + n * Duration::from_millis(every_ms.into());
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                let at = Instant::now();
                let _ = socket.send_to(&packet.to_bytes(), to);
                sent.lock().unwrap().push((Packet { at, from, ..packet }, to));
            }
        });
        sending.await.unwrap();
    }

    /// All that came and all that was sent, in order, each with where it went.
    pub fn passed(&self) -> Vec<(Packet, SocketAddr)> {
        let here = self.socket.local_addr().unwrap();
        let came = self.packets().into_iter().map(|packet| (packet, here));
        let mut all: Vec<_> = came.chain(self.sent.lock().unwrap().clone()).collect();
        all.sort_by_key(|(packet, _)| packet.at);
        all
    }
}

/// Of 20 ms each, in mu-law.
pub fn packets_of(sound: &Sound) -> Vec<Packet> {
    packets_of_ms(sound, 20)
}

/// Of so many milliseconds each.
pub fn packets_of_ms(sound: &Sound, ms: u32) -> Vec<Packet> {
    let frames = sound.samples.chunks(ms as usize * 8);
    let packet = move |(n, frame): (u16, &[i16])| Packet {
        at: Instant::now(),
        from: SocketAddr::from(([127, 0, 0, 1], 0)),
        payload_type: 0,
        is_marked: n == 0,
        sequence: n.wrapping_add(65_500),
        timestamp: u32::from(n) * ms * 8,
        ssrc: 0x0bad_cafe,
        payload: frame.iter().map(|sample| mu_law(*sample)).collect(),
    };
    (0..).zip(frames).map(packet).collect()
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
