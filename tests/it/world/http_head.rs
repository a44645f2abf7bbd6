//! The head of a request of HTTP/1.1, for local servers that speak it with their own few lines.
use std::io::Result;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpStream,
};

#[derive(Debug)]
pub struct Head {
    /// As `POST /v1/audio/speech`.
    pub line: String,
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// `None`: the client has gone.
    pub async fn read(socket: &mut BufReader<TcpStream>) -> Result<Option<Self>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if socket.read_line(&mut line).await? == 0 {
                return Ok(None);
            }
            if line == "\r\n" {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let headers = lines[1..].iter().filter_map(|line| line.split_once(": "));
        Ok(Some(Head {
            line: lines[0].trim_end_matches(" HTTP/1.1").to_owned(),
            headers: headers.map(|(name, value)| (name.into(), value.into())).collect(),
        }))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Bytes of the body.
    pub fn length(&self) -> usize {
        self.header("content-length")
            .map_or(0, |length| length.parse().unwrap())
    }
}

pub fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}
