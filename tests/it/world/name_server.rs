//! A name server on a real UDP socket: SRV and NAPTR records of its zone, and nothing of all else. Source: RFC 1035, section 4,
//! RFC 2782, and RFC 3403.
use std::{collections::HashMap, net::SocketAddr};
use tokio::{net::UdpSocket, task::JoinHandle};

/// One record's data.
#[derive(Clone, Debug)]
pub enum Data {
    Srv {
        priority: u16,
        port: u16,
        target: &'static str,
    },
    Naptr {
        order: u16,
        service: &'static str,
        replacement: &'static str,
    },
}

pub struct NameServer {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl NameServer {
    pub async fn start(zone: &[(&str, Data)]) -> NameServer {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let mut records: HashMap<Vec<u8>, Vec<Data>> = HashMap::new();
        for (name, data) in zone {
            records.entry(encoded(name)).or_default().push(data.clone());
        }
        let task = tokio::spawn(async move {
            let mut buffer = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                if let Some(answer) = answer(&buffer[..length], &records) {
                    // Who asked may be gone.
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        NameServer { address, task }
    }
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.to_lowercase().into_bytes());
    }
    bytes.push(0);
    bytes
}

/// `None`: it is not a question with one name.
fn answer(query: &[u8], records: &HashMap<Vec<u8>, Vec<Data>>) -> Option<Vec<u8>> {
    let question = query.get(12..)?;
    let end = question.iter().position(|byte| *byte == 0)? + 1;
    let name = question[..end].to_ascii_lowercase();
    let kind = u16::from_be_bytes(question.get(end..end + 2)?.try_into().ok()?);
    let found: Vec<Vec<u8>> = records
        .get(&name)
        .into_iter()
        .flatten()
        .filter(|data| data.kind() == kind)
        .map(Data::bytes)
        .collect();
    let mut answer = query[..2].to_vec();
    // A final answer that recursion led to; one question, so many records.
    answer.extend([0x85, 0x80, 0, 1, 0, u8::try_from(found.len()).unwrap(), 0, 0, 0, 0]);
    answer.extend(&question[..end + 4]);
    for data in found {
        // The name of the question, its kind, IN, a minute.
        answer.extend([0xc0, 12]);
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 60]);
        answer.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        answer.extend(data);
    }
    Some(answer)
}

impl Data {
    fn kind(&self) -> u16 {
        match self {
            Data::Srv { .. } => 33,
            Data::Naptr { .. } => 35,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Data::Srv { priority, port, target } => {
                let numbers = [*priority, 0, *port].map(u16::to_be_bytes).concat();
                [numbers, encoded(target)].concat()
            }
            Data::Naptr {
                order,
                service,
                replacement,
            } => {
                let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
                let numbers = [*order, 10].map(u16::to_be_bytes).concat();
                [numbers, text("s"), text(service), text(""), encoded(replacement)].concat()
            }
        }
    }
}
