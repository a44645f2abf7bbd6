//! The vectors of the RFCs, and what both sides do with challenges.
use super::*;
use crate::message::{Fields, Message, Name, Request, Response, read_datagram};
use challenge::Params;
use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// RFC 7616, section 3.9.1; RFC 2617, section 3.5; RFC 7616, section 3.9.2 with erratum 4897 (its SHA-512-256 was another hash);
/// and one of RFC 2069's kind, without qop.
#[test]
fn the_vectors_of_the_rfcs() {
    let long = (
        "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
        "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
    );
    let old = ("dcd98b7102dd2f0e8b11d0f600bfb0c093", "0a4f113b");
    let doe = (
        "5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK",
        "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v",
    );
    let table = [
        (
            "MD5",
            "Mufasa",
            "Circle of Life",
            "http-auth@example.org",
            "/dir/index.html",
            long,
            "8ca523f5e9506fed4657c9700eebdbec",
        ),
        (
            "SHA-256",
            "Mufasa",
            "Circle of Life",
            "http-auth@example.org",
            "/dir/index.html",
            long,
            "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
        ),
        (
            "md5",
            "Mufasa",
            "Circle Of Life",
            "testrealm@host.com",
            "/dir/index.html",
            old,
            "6629fae49393a05397450978507c4ef1",
        ),
        (
            "SHA-512-256",
            "Jäsøn Doe",
            "Secret, or not?",
            "api@example.org",
            "/doe.json",
            doe,
            "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5",
        ),
    ];
    for (algorithm, username, password, realm, uri, (nonce, cnonce), expected) in table {
        let asked = Asked {
            algorithm: Algorithm::read(algorithm).unwrap(),
            username,
            realm,
            nonce,
            method: "GET",
            uri,
            auth: Some((1, cnonce)),
        };
        assert_eq!(asked.response(password), expected, "{algorithm}");
    }
    let asked = Asked {
        algorithm: Algorithm::read("MD5").unwrap(),
        username: "user123",
        realm: "example.org",
        nonce: "YWmh5GFpoLjiTDCA1hTSSygkgdj99aHE",
        method: "REGISTER",
        uri: "sip:example.org",
        auth: None,
    };
    assert_eq!(asked.response("password123"), "bc185e4893f17f12dc53153d2a62e6a6");
    assert!(Algorithm::read("SHA-1").is_none() && Algorithm::read("AKAv1-MD5").is_none());
}

fn credentials() -> Credentials {
    Credentials {
        username: "alice \"a\"".into(),
        password: "secret".into(),
    }
}

fn authorizer() -> Authorizer {
    Authorizer::new(credentials(), b"instance", b"trunk")
}

fn request(method: &str, cseq: u32) -> Request {
    let text = format!(
        "{method} sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK{cseq}\r\nFrom: <sip:a@h>;tag=1\r\nTo: <sip:b@h>\r\n\
         Call-ID: c\r\nCSeq: {cseq} {method}\r\n\r\n"
    );
    match read_datagram(text.as_bytes()).unwrap() {
        Message::Request(request) => request,
        Message::Response(_) => panic!("no request"),
    }
}

fn challenge(code: u16, values: &[&str]) -> Response {
    let mut response = request("INVITE", 1).response(code, "Who?", Some("t"));
    let name = if code == 401 {
        Name::WWW_AUTHENTICATE
    } else {
        Name::PROXY_AUTHENTICATE
    };
    for value in values {
        response.headers.insert(name.clone(), *value);
    }
    response
}

fn answer(request: &Request, name: Name) -> Params {
    Params::read(&request.header_text(name).unwrap()).unwrap()
}

const MD5: &str = "Digest realm=\"r\", nonce=\"n1\", algorithm=MD5, qop=\"auth,auth-int\", opaque=\"o\\\"\"";

#[test]
fn a_nonce_is_used_again_with_a_rising_count() {
    let mut authorizer = authorizer();
    let mut first = request("INVITE", 1);
    assert_eq!(authorizer.authorize(&mut first, None), Ok(()));
    assert!(!first.headers.contains(&Name::AUTHORIZATION), "nothing is known yet");
    let mut second = request("INVITE", 2);
    assert_eq!(authorizer.authorize(&mut second, Some(&challenge(401, &[MD5]))), Ok(()));
    let text = second.header_text(Name::AUTHORIZATION).unwrap();
    assert!(
        text.starts_with(
            "Digest username=\"alice \\\"a\\\"\", realm=\"r\", nonce=\"n1\", uri=\"sip:b@h\", response=\""
        ),
        "{text}"
    );
    assert!(
        text.contains(", algorithm=MD5, qop=auth, nc=00000001, cnonce=\"") && text.ends_with(", opaque=\"o\\\"\""),
        "{text}"
    );
    let mut bye = request("BYE", 3);
    authorizer.authorize(&mut bye, None).unwrap();
    let found = answer(&bye, Name::AUTHORIZATION);
    assert_eq!(found.get("nc"), Some("00000002"));
    assert_ne!(found.get("cnonce"), answer(&second, Name::AUTHORIZATION).get("cnonce"));
    // The next nonce, with stale or without: that one may have been too old.
    let stale = MD5.replace("n1", "n2");
    let mut again = bye.clone();
    authorizer
        .authorize(&mut again, Some(&challenge(401, &[&stale])))
        .unwrap();
    let found = answer(&again, Name::AUTHORIZATION);
    assert_eq!((found.get("nonce"), found.get("nc")), (Some("n2"), Some("00000001")));
}

#[test]
fn the_first_challenge_of_each_realm_that_is_known_is_answered() {
    let mut authorizer = authorizer();
    let mut both = challenge(
        401,
        &[
            "Basic realm=\"r\"",
            "Digest realm=\"r\", nonce=\"x\", algorithm=WHIRLPOOL, qop=\"auth\"",
            "Digest realm=\"r\", nonce=\"y\", algorithm=MD5, qop=\"auth-int\"",
            "digest Realm=r ,nonce=\"sha\", algorithm=\"SHA-256\", qop=auth",
            MD5,
        ],
    );
    both.headers
        .insert(Name::PROXY_AUTHENTICATE, "Digest realm=\"p\", nonce=\"plain\"");
    let mut invite = request("INVITE", 2);
    authorizer.authorize(&mut invite, Some(&both)).unwrap();
    assert_eq!(invite.headers.get_raw(&Name::AUTHORIZATION).count(), 1);
    let found = answer(&invite, Name::AUTHORIZATION);
    assert_eq!(
        (found.get("nonce"), found.get("algorithm")),
        (Some("sha"), Some("SHA-256"))
    );
    let found = answer(&invite, Name::PROXY_AUTHORIZATION);
    assert_eq!(
        (
            found.get("nonce"),
            found.get("qop"),
            found.get("nc"),
            found.get("algorithm")
        ),
        (Some("plain"), None, None, None)
    );
    let asked = |values: &[&str]| {
        super::Authorizer::new(credentials(), b"", b"")
            .authorize(&mut request("INVITE", 2), Some(&challenge(401, values)))
    };
    assert_eq!(asked(&[]), Err(Refused::NoChallenge));
    assert_eq!(asked(&["Basic realm=\"r\""]), Err(Refused::NoChallenge));
    assert_eq!(
        asked(&["Digest realm=\"r\", nonce=\"x\", algorithm=WHIRLPOOL"]),
        Err(Refused::Unknown)
    );
    assert_eq!(asked(&["Digest nonce=\"x\""]), Err(Refused::Unknown));
}

#[test]
fn credentials_that_were_refused_are_not_sent_again() {
    for first in [MD5, "Digest realm=\"r\", nonce=\"n1\""] {
        let mut authorizer = authorizer();
        let mut invite = request("INVITE", 2);
        authorizer
            .authorize(&mut invite, Some(&challenge(401, &[first])))
            .unwrap();
        let next = first.replace("n1", "n2");
        assert_eq!(
            authorizer.authorize(&mut invite.clone(), Some(&challenge(401, &[&next]))),
            Err(Refused::Credentials),
            "{first}"
        );
        // What is refused is forgotten: the next request asks without.
        let mut other = request("INVITE", 3);
        authorizer.authorize(&mut other, None).unwrap();
        assert!(!other.headers.contains(&Name::AUTHORIZATION));
    }
}

#[test]
fn a_peer_that_asks_again_and_again_is_not_answered_for_ever() {
    let mut authorizer = authorizer();
    let mut invite = request("INVITE", 1);
    let mut outcome = Ok(());
    for turn in 0..10 {
        let value = format!("Digest realm=\"r\", nonce=\"{turn}\", stale=TRUE, qop=auth");
        outcome = authorizer.authorize(&mut invite, Some(&challenge(407, &[&value])));
        if outcome.is_err() {
            assert_eq!(turn, 3);
            break;
        }
    }
    assert_eq!(outcome, Err(Refused::Endless));
    // Another request begins anew.
    authorizer.authorize(&mut request("INVITE", 9), None).unwrap();
    let value = "Digest realm=\"r\", nonce=\"z\", stale=true, qop=auth";
    assert_eq!(
        authorizer.authorize(&mut request("INVITE", 9), Some(&challenge(407, &[value]))),
        Ok(())
    );
}

#[test]
fn nothing_shows_a_password() {
    assert!(!format!("{:?}", credentials()).contains("secret"));
}

#[test]
fn an_answer_to_our_challenge_is_taken_once() {
    let mut verifier = Verifier::new(b"instance", "callboard");
    let mut authorizer = authorizer();
    let at = Duration::from_secs(1000);
    assert_eq!(
        verifier.verify(&request("INVITE", 1), &credentials(), SOURCE, at),
        Proof::Missing
    );
    let asks = verifier.challenge(&request("INVITE", 1), SOURCE, at, false, "t");
    assert_eq!(
        (asks.code, asks.headers.get_raw(&Name::WWW_AUTHENTICATE).count()),
        (401, 2)
    );
    let mut invite = request("INVITE", 2);
    authorizer.authorize(&mut invite, Some(&asks)).unwrap();
    let wrong = Credentials {
        password: "other".into(),
        ..credentials()
    };
    assert_eq!(verifier.verify(&invite, &wrong, SOURCE, at), Proof::Wrong);
    let named = Credentials {
        username: "bob".into(),
        ..credentials()
    };
    assert_eq!(verifier.verify(&invite, &named, SOURCE, at), Proof::Wrong);
    let mut elsewhere = invite.clone();
    elsewhere.uri = "sip:premium@h".parse().unwrap();
    assert_eq!(verifier.verify(&elsewhere, &credentials(), SOURCE, at), Proof::Wrong);
    let stranger = IpAddr::V4(Ipv4Addr::LOCALHOST);
    assert_eq!(verifier.verify(&invite, &credentials(), stranger, at), Proof::Missing);
    assert_eq!(
        verifier.verify(&invite, &credentials(), SOURCE, at - Duration::from_secs(1)),
        Proof::Stale
    );
    assert_eq!(
        verifier.verify(&invite, &credentials(), SOURCE, at + Duration::from_secs(61)),
        Proof::Stale
    );
    assert_eq!(
        verifier.verify(&invite, &credentials(), SOURCE, at + Duration::from_secs(60)),
        Proof::Good
    );
    assert_eq!(
        verifier.verify(&invite, &credentials(), SOURCE, at + Duration::from_secs(60)),
        Proof::Wrong,
        "once"
    );
    // Another call that was challenged in the same second has the same nonce, and counts for itself.
    let mut other = request("INVITE", 1);
    other.headers.remove(&Name::CALL_ID);
    other.headers.insert(Name::CALL_ID, "another");
    self::authorizer().authorize(&mut other, Some(&asks)).unwrap();
    assert_eq!(verifier.verify(&other, &credentials(), SOURCE, at), Proof::Good);
    assert_eq!(verifier.verify(&other, &credentials(), SOURCE, at), Proof::Wrong);
    let mut bye = request("BYE", 3);
    authorizer.authorize(&mut bye, None).unwrap();
    assert_eq!(
        verifier.verify(&bye, &credentials(), SOURCE, at),
        Proof::Good,
        "the next count"
    );
    assert_eq!(
        Verifier::new(b"another", "callboard").verify(&bye, &credentials(), SOURCE, at),
        Proof::Missing
    );
    // The next process of the same instance knows the nonce.
    let mut next = Verifier::new(b"instance", "callboard");
    let later = at + Duration::from_secs(59);
    assert_eq!(next.verify(&bye, &credentials(), SOURCE, later), Proof::Good);
    let stale = verifier.challenge(&request("INVITE", 1), SOURCE, at, true, "t");
    assert!(
        stale
            .header_text(Name::WWW_AUTHENTICATE)
            .unwrap()
            .ends_with(", stale=true")
    );
}
