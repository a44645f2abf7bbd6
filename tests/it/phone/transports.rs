//! What goes over which transport.
use super::stage::{CALLEE, Stage, end};
use crate::{
    on_the_phone,
    world::phone::byte_peer::{BytePeer, header, response},
};
use serde_json::{Value, json};
use std::{
    io::{Read, Write, copy, sink},
    net::{SocketAddr, TcpListener},
    sync::mpsc::{Receiver, channel},
};

/// A busy phone that takes a connection; what was asked of it comes back.
fn busy_over_tcp(at: SocketAddr) -> Receiver<String> {
    let listener = TcpListener::bind(at).unwrap();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut text, mut buffer) = (String::new(), [0; 4_096]);
        while !is_whole(&text) {
            let length = stream.read(&mut buffer).unwrap();
            assert!(length > 0, "half a message came: {text}");
            text += &String::from_utf8_lossy(&buffer[..length]);
        }
        stream.write_all(&response(&text, "486 Busy Here", "", "")).unwrap();
        tell.send(text).unwrap();
        // Its ACK, until the service ends.
        let _ = copy(&mut stream, &mut sink());
    });
    told
}

fn is_whole(text: &str) -> bool {
    let length = header(text, "Content-Length").and_then(|length| length.parse::<usize>().ok());
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
    body.is_some() && body >= length
}

/// A trunk whose INVITEs are longer than a datagram should be, and a number that is on it.
async fn long_winded(stage: &Stage, at: SocketAddr, number: &str) {
    let label = "long".repeat(15);
    let trunk = json!({ "from_domain": format!("{label}.{label}.{label}.example.com"), "caller_id": "pai",
        "codecs": ["pcmu", "pcma", "g722", "opus"] });
    let trunk: Value = stage.trunk(at.port(), trunk).await;
    stage.number(number, &trunk, json!({})).await;
}

on_the_phone! {
    /// RFC 3261, section 18.1.1: what is too long for a datagram goes over TCP, if the peer takes that; else it goes as it is.
    async fn a_long_invite_goes_over_tcp_where_that_is_taken(stage: &mut Stage) needs [] {
        let (with, without) = (stage.address(), stage.address());
        let told = busy_over_tcp(with);
        let silent = BytePeer::silent(with);
        let busy = BytePeer::start(without, |heard, _| match heard.what() {
            "INVITE" => vec![response(&heard.text, "486 Busy Here", "", "")],
            _ => Vec::new(),
        });
        long_winded(stage, with, "+12025551001").await;
        long_winded(stage, without, "+12025551002").await;
        let agent = stage.agent(json!({})).await;
        for from in ["+12025551001", "+12025551002"] {
            let id = stage.call(&agent, CALLEE, json!({ "from_number": from })).await;
            assert_eq!(end(&stage.ended(&id).await), ("busy", "busy"), "{from}");
        }
        let by_tcp = told.recv().unwrap();
        assert!(by_tcp.starts_with("INVITE ") && by_tcp.len() > 1_300, "{by_tcp}");
        assert!(header(&by_tcp, "Via").unwrap().starts_with("SIP/2.0/TCP "), "{by_tcp}");
        assert!(silent.heard("INVITE").is_empty(), "it was not sent twice");
        let by_udp = busy.hears("INVITE", 1).await;
        assert!(by_udp.text.len() > 1_300, "{}", by_udp.text.len());
        assert!(by_udp.header("Via").unwrap().starts_with("SIP/2.0/UDP "), "{}", by_udp.text);
    }
}
