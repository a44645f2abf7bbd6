//! How we introduce ourselves, and what makes another peer of a trunk.
use super::*;
use entities::{
    ids::{TenantId, TrunkId},
    sip_trunk::Status,
    values::Moment,
};
use serde_json::{Value, json};
use sip::message::uri_text;

fn peering(more: Value) -> Peering {
    let mut fields = json!({ "name": "Carrier", "host": "sip.example.com:5080" });
    fields
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let at = Moment::from_millis(0);
    Peering::of(&Model {
        id: TrunkId(Uuid::nil()),
        tenant_id: TenantId(Uuid::nil()),
        definition: serde_json::from_value(fields).unwrap(),
        sealed_password: None,
        sealed_inbound_password: None,
        status: Status::Untested,
        tested_at: None,
        version: 1,
        created_at: at,
        updated_at: at,
        deleted_at: None,
    })
}

#[test]
fn who_we_are_follows_from_the_settings() {
    let table = [
        (
            json!({}),
            [
                "sip:sip.example.com:5080",
                "<sip:callboard@sip.example.com>",
                "",
                "sip:callboard@192.0.2.9:5060",
            ],
        ),
        (
            json!({ "username": "4711", "from_domain": "acme.example", "transport": "tcp" }),
            [
                "sip:acme.example;transport=tcp",
                "<sip:4711@acme.example>",
                "",
                "sip:4711@192.0.2.9:5060;transport=tcp",
            ],
        ),
        (
            json!({
                "username": "acme", "outbound_proxy": "[2001:db8::1]:5061", "transport": "tls", "register": { "contact_user": "line-1" },
            }),
            [
                "sip:sip.example.com:5080;transport=tls",
                "<sip:acme@sip.example.com>",
                "<sip:[2001:db8::1]:5061;transport=tls;lr>",
                "sip:line-1@192.0.2.9:5060;transport=tls",
            ],
        ),
    ];
    for (settings, expected) in table {
        let peering = peering(settings.clone());
        let account = peering.account().unwrap();
        let contact = peering.contact("192.0.2.9:5060").unwrap();
        let made = [
            uri_text(&account.registrar),
            account.address_of_record,
            account.route.join(","),
            uri_text(&contact),
        ];
        assert_eq!(made, expected, "{settings}");
    }
}

#[test]
fn a_user_cannot_write_the_rest_of_the_address() {
    assert_eq!(escaped("a b@c>;x=\"\u{e4}"), "a%20b%40c%3E%3Bx%3D%22%C3%A4");
    let peering = peering(json!({ "username": "a@b>, <sip:c" }));
    assert_eq!(
        peering.address_of_record(),
        "<sip:a%40b%3E%2C%20%3Csip%3Ac@sip.example.com>"
    );
    assert!(peering.contact("192.0.2.9").is_ok());
}

#[test]
fn only_what_the_peer_has_to_do_with_makes_another_peering() {
    let one = peering(json!({}));
    let named = json!({ "name": "Other", "codecs": ["g722"], "max_calls_per_second": 9.0, "paused": true });
    assert!(one == peering(named));
    for settings in [
        json!({ "host": "sip.example.com" }),
        json!({ "transport": "tls" }),
        json!({ "username": "x" }),
        json!({ "register": { "expires_seconds": 60 } }),
        json!({ "outbound_proxy": "x.example.com" }),
        json!({ "inbound_addresses": ["192.0.2.1"] }),
        json!({ "options_interval_seconds": 0 }),
    ] {
        assert!(one != peering(settings.clone()), "{settings}");
    }
}

#[test]
fn whom_we_speak_with_may_answer_and_who_may_call_is_the_users_word() {
    let address = |last: u8| SocketAddr::from(([192, 0, 2, last], 5060));
    let sources = |peering: Peering| {
        let sources = peering.sources(&[address(1), address(1)], &[address(2)]);
        sources.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(sources(peering(json!({}))), ["192.0.2.1/32", "192.0.2.2/32"]);
    let named = json!({ "inbound_addresses": ["198.51.100.0/24"] });
    assert_eq!(sources(peering(named)), ["192.0.2.1/32", "198.51.100.0/24"]);
}
