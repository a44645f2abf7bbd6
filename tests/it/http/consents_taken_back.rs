//! Consents that end: by whichever way somebody says no, in the moment in which it is said; and what a list of them brings in.
use super::consents::{NUMBER, consent, give, live};
use crate::{
    on_both,
    world::{Api, Tenant, World, minutes},
};
use entities::{
    attempt::{self, RecordKind},
    dnc::Source,
    ids::TenantId,
    values::Env,
};
use rules::barred::{Entry, Whom};
use serde_json::{Value, json};

async fn read(api: &Api, id: &str) -> Value {
    api.get(&format!("/v1/consents/{id}")).await.ok()
}

async fn listed(api: &Api) -> Value {
    api.get("/v1/dnc").await.ok()["data"][0].clone()
}

/// The person says no to the service itself.
async fn opts_out(world: &World, tenant: TenantId, env: Env, source: Source) {
    let entry = Entry {
        id: world.deps().ids.next(),
        whom: Whom::Number(NUMBER.parse().unwrap()),
        channels: Vec::new(),
        reason: Some("said so".into()),
        source,
        session_id: None,
        requested_at: None,
        created_by: None,
    };
    actors::dnc::add(world.deps(), (tenant, env), entry).await.unwrap();
}

/// The places of the entry and of the withdrawal, by the audit's dump.
async fn places(world: &World) -> (Value, Value) {
    let dump = world.evidence().await.dump;
    let of = |kind: &str, place: &str| dump.iter().find(|line| line["kind"] == kind).unwrap()[place].clone();
    (of("dnc", "added_seq"), of("consent", "revoked_seq"))
}

/// How a list came in: its counts, and what was said of the rows that were refused.
async fn import(world: &World, tenant: &Tenant, csv: &str) -> (Value, Vec<(i64, String, Option<String>)>) {
    let job = tenant.api.upload("/v1/consents/import", csv).await.ok();
    world.advance(minutes(1)).await;
    let job = tenant
        .api
        .get(&format!("/v1/imports/{}", job["id"].as_str().unwrap()))
        .await
        .ok();
    assert_eq!(
        (job["status"].as_str(), job["kind"].as_str()),
        (Some("completed"), Some("consents"))
    );
    let refused = job["rejections"].as_array().unwrap().iter().map(|row| {
        let code = row["code"].as_str().unwrap().to_owned();
        (
            row["line"].as_i64().unwrap(),
            code,
            row["param"].as_str().map(str::to_owned),
        )
    });
    (
        json!([job["accepted"], job["duplicates"], job["rejected"]]),
        refused.collect(),
    )
}

const HEADER: &str = "phone_number,email,seller,channels,purposes,tier,method,given_at,contract_ref";

on_both! {
    /// 47 CFR 64.1200(a)(10): a voice or key opt-out always counts.
    async fn an_opt_out_in_a_call_takes_all_consents_back_in_its_own_commit(world: &mut World) {
        let tenant = world.tenant().await;
        let id = give(&tenant.api, json!({ "phone_number": "+15002345675", "email": "ada@example.com", "channels": ["phone", "sms", "email"] })).await;
        let other = give(&tenant.api, json!({ "seller": "Another" })).await;
        let call = json!({ "to_number": "+15002345675", "agent_id": tenant.agent().await });
        tenant.api.post("/v1/sessions", call).await.ok();
        world.advance(minutes(2)).await;
        let row = read(&tenant.api, &id).await;
        assert_eq!((row["standing"].clone(), row["status"].as_str()), (json!(["email"]), Some("valid")), "the address was not meant");
        let withdrawals = row["withdrawals"].as_array().unwrap();
        assert_eq!((withdrawals.len(), &withdrawals[0]["channel"], &withdrawals[0]["by"]), (2, &json!("phone"), &json!(null)));
        let (entry, consent) = places(world).await;
        assert!(entry.is_i64() && entry == consent, "{entry} {consent}");
        assert_eq!(read(&tenant.api, &other).await["status"], "valid", "of somebody else");
    }

    /// 47 CFR 64.1200(a)(10): STOP by SMS always counts.
    async fn a_stop_takes_all_consents_back_in_its_own_commit(world: &mut World) {
        let tenant = world.tenant().await;
        let id = give(&tenant.api, json!({ "phone_number": "+15002340009" })).await;
        let stop = json!({ "to_number": "+15002220000", "from_number": "+15002340009", "body": "STOP" });
        tenant.api.post("/v1/_sandbox/inbound_sms", stop.clone()).await.ok();
        let row = read(&tenant.api, &id).await;
        assert_eq!((row["status"].as_str(), row["revoked_by"].as_str(), row["standing"].clone()), (Some("revoked"), None, json!([])));
        let (entry, consent) = places(world).await;
        assert!(entry.is_i64() && entry == consent, "{entry} {consent}");
        // Who has agreed since, and says it again, has taken that back, too, though the list bars no more than before.
        world.advance(minutes(1)).await;
        let newer = give(&tenant.api, json!({ "phone_number": "+15002340009", "given_at": "2027-03-02T13:00:30Z" })).await;
        assert_eq!(read(&tenant.api, &newer).await["status"], "valid");
        tenant.api.post("/v1/_sandbox/inbound_sms", stop).await.ok();
        assert_eq!(read(&tenant.api, &newer).await["status"], "revoked");
        // Wanting texts again is no consent.
        let start = json!({ "to_number": "+15002220000", "from_number": "+15002340009", "body": "START" });
        tenant.api.post("/v1/_sandbox/inbound_sms", start).await.ok();
        assert_eq!(read(&tenant.api, &newer).await["status"], "revoked");
        world.restart().await;
        assert_eq!(read(&tenant.api, &id).await["status"], "revoked");
    }

    /// However many consents to something else the person has given, and taken back, since.
    async fn what_was_taken_back_long_ago_is_not_recorded_again(world: &mut World) {
        let tenant = world.tenant().await;
        let calls = give(&tenant.api, json!({ "channels": ["phone"] })).await;
        tenant.api.post(&format!("/v1/consents/{calls}/revoke"), json!({ "only_this": true })).await.ok();
        for round in 0..2 {
            world.advance(minutes(1)).await;
            let given_at = world.clock.now();
            let row = |n: u32| format!("{NUMBER},,Acme Ltd.,sms,marketing,express,desk {n},{given_at},\n");
            let csv: String = std::iter::once(format!("{HEADER}\n")).chain((0..70).map(row)).collect();
            let (counts, refused) = import(world, &tenant, &csv).await;
            assert_eq!((counts, refused), (json!([70, 0, 0]), vec![]), "round {round}");
            let no_texts = json!({ "phone_number": NUMBER, "channels": ["sms"] });
            tenant.api.post("/v1/dnc", no_texts).await.ok();
        }
        let again = consent(&json!({ "channels": ["phone"], "method": "list of a partner" }));
        let refused = tenant.api.post("/v1/consents", again).await;
        assert_eq!(refused.error(), (409, "invalid_state", None), "{}", refused.body);
    }

    async fn staff_and_lists_take_back_what_they_bar(world: &mut World) {
        let tenant = world.tenant().await;
        let id = give(&tenant.api, json!({ "email": "ada@example.com", "channels": ["phone", "sms", "email"] })).await;
        tenant.api.post("/v1/dnc", json!({ "phone_number": NUMBER, "channels": ["sms"], "reason": "by letter" })).await.ok();
        let row = read(&tenant.api, &id).await;
        assert_eq!((row["standing"].clone(), row["withdrawals"][0]["reason"].as_str()), (json!(["phone", "email"]), Some("by letter")));
        assert!(row["withdrawals"][0]["by"].as_str().unwrap().contains("vk_test_"));
        tenant.api.upload("/v1/dnc/import", format!("phone_number,email\n{NUMBER},\n,ADA@example.com\n")).await.ok();
        world.advance(minutes(1)).await;
        let row = read(&tenant.api, &id).await;
        assert_eq!((row["status"].as_str(), row["withdrawals"].as_array().unwrap().len()), (Some("revoked"), 3));
    }

    /// 47 CFR 64.1200(a)(10): within 10 business days; we warn after five days.
    async fn a_request_by_letter_says_when_it_was_made(world: &mut World) {
        let tenant = world.tenant().await;
        for (n, (when, expected)) in [
            ("2027-03-02T13:00:00Z", Some(false)),
            ("2027-02-25T13:00:00Z", Some(false)),
            ("2027-02-25T12:59:59Z", Some(true)),
            ("2026-03-02T13:00:00Z", Some(true)),
            ("2026-03-02T12:59:59Z", None),
            ("2027-03-02T13:00:01Z", None),
        ].into_iter().enumerate() {
            let asked = json!({ "phone_number": format!("+1500234010{n}"), "requested_at": when });
            let answer = tenant.api.post("/v1/dnc", asked).await;
            match expected {
                None => assert_eq!(answer.error(), (422, "validation_failed", Some("requested_at")), "{when}"),
                Some(late) => {
                    let entry = answer.ok();
                    assert_eq!(entry.get("warning").is_some(), late, "{when}");
                    assert_eq!(entry["requested_at"].as_str().unwrap()[..19], when[..19], "{when}");
                }
            }
        }
        let id = give(&tenant.api, json!({})).await;
        let revoke = format!("/v1/consents/{id}/revoke");
        assert_eq!(tenant.api.post(&revoke, json!({ "requested_at": "2020-01-01T00:00:00Z" })).await.error().0, 422);
        let late = tenant.api.post(&revoke, json!({ "requested_at": "2027-01-02T13:00:00Z" })).await.ok();
        assert!(late["warning"].as_str().unwrap().contains("10 business days"), "{late}");
    }

    async fn one_that_is_revoked_bars_the_person_unless_only_it_is_meant(world: &mut World) {
        let tenant = world.tenant().await;
        let (one, two) = (give(&tenant.api, json!({})).await, give(&tenant.api, json!({ "seller": "B" })).await);
        let at = |id: &str| format!("/v1/consents/{id}/revoke");
        let refused = tenant.api.post(&at(&one), json!({ "channels": ["email"] })).await;
        assert_eq!(refused.error(), (422, "validation_failed", Some("channels")));
        let narrowed = tenant.api.post(&at(&one), json!({ "channels": ["sms"], "only_this": true, "reason": "wrong box" })).await.ok();
        assert_eq!((narrowed["standing"].clone(), narrowed["revoked_at"].clone()), (json!(["phone"]), json!(null)));
        assert_eq!((listed(&tenant.api).await, read(&tenant.api, &two).await["standing"].clone()), (json!(null), json!(["phone", "sms"])));

        let revoked = tenant.api.post(&at(&one), json!({})).await.ok();
        assert_eq!((revoked["status"].as_str(), revoked["revoked_at"].as_str()), (Some("revoked"), Some("2027-03-02T13:00:00.000Z")));
        let entry = listed(&tenant.api).await;
        assert_eq!((entry["phone_number"].as_str(), entry["source"].as_str(), entry["channels"].clone()), (Some(NUMBER), Some("manual"), json!(["phone", "sms"])));
        assert_eq!(read(&tenant.api, &two).await["status"], "revoked", "whoever says no says it to all");
        let on_record = world.rows("attempt_records").await;
        let again = tenant.api.post(&at(&one), json!({})).await.ok();
        assert_eq!(again["withdrawals"], revoked["withdrawals"], "a second time changes nothing");
        assert_eq!(world.rows("attempt_records").await, on_record, "and is not on record once more");
        // Who has entered it is content, which can be blanked: bodies name nobody.
        let rows = attempt::range(&world.deps().db.read, (tenant.id, Env::Test), 0, 100).await.unwrap();
        let revocations: Vec<_> = rows.iter().filter(|row| row.kind == RecordKind::Revocation).collect();
        assert_eq!(revocations.len(), 2, "of a channel, and of the rest");
        for row in &rows {
            assert!(!row.body.contains("entered_by") && row.content.as_ref().unwrap().contains("entered_by"), "{row:?}");
        }
        // It is not brought back by being recorded again.
        for change in [json!({}), json!({ "method": "Web form" }), json!({ "given_at": "2026-11-02T09:30:00.001Z" })] {
            let refused = tenant.api.post("/v1/consents", consent(&change)).await;
            assert_eq!(refused.error(), (409, "invalid_state", None), "{change}");
        }
        world.advance(minutes(1)).await;
        give(&tenant.api, json!({ "given_at": "2027-03-02T13:00:30Z" })).await;
    }

    /// 47 CFR 64.1200(d): the entry stays until the person has agreed anew.
    async fn in_live_an_opt_out_ends_only_with_a_newer_consent(world: &mut World) {
        let tenant = world.tenant().await;
        let live = live(world, &tenant).await;
        give(&live, json!({})).await;
        opts_out(world, tenant.id, Env::Live, Source::OptOutVoice).await;
        world.advance(minutes(10)).await;
        let entry = listed(&live).await["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/dnc/{entry}?reason=agreed+anew");
        let refused = async |why: &str| {
            let answer = live.delete(&path).await;
            assert_eq!(answer.error(), (409, "invalid_state", None), "{why}");
            assert_eq!(live.get("/v1/dnc").await.ok()["data"].as_array().unwrap().len(), 1, "{why}");
        };
        refused("the consent from before was taken back").await;
        let old = consent(&json!({ "given_at": "2027-03-02T12:59:59Z", "method": "list of a partner" }));
        assert_eq!(live.post("/v1/consents", old).await.error(), (409, "invalid_state", None), "recorded later, and given earlier");
        let other = give(&live, json!({ "given_at": "2027-03-02T12:59:59Z", "seller": "Partner" })).await;
        refused("to another seller, and given earlier").await;
        give(&live, json!({ "given_at": "2027-03-02T13:05:00Z", "channels": ["phone"] })).await;
        refused("the list bars texts, too").await;
        let texts = give(&live, json!({ "given_at": "2027-03-02T13:06:00Z", "channels": ["sms"], "expires_at": "2027-03-02T13:10:00Z" })).await;
        refused("it has expired").await;
        give(&live, json!({ "given_at": "2027-03-02T13:06:00Z", "channels": ["sms"] })).await;
        assert_eq!(live.delete(&format!("/v1/dnc/{entry}")).await.error(), (422, "validation_failed", Some("reason")));
        assert_eq!(live.delete(&path).await.status, 204);
        assert_eq!(read(&live, &other).await["status"], "revoked", "what was given before the no stays taken back");
        assert_eq!(read(&live, &texts).await["status"], "expired");
        assert_eq!(live.get("/v1/consents?status=valid").await.ok()["data"].as_array().unwrap().len(), 2);
    }

    /// 47 CFR 64.1200(a)(10): by any reasonable means, so also by letter, or to somebody who takes their consent back.
    async fn in_live_what_was_asked_elsewhere_ends_only_with_a_newer_consent(world: &mut World) {
        let tenant = world.tenant().await;
        let live = live(world, &tenant).await;
        let id = give(&live, json!({})).await;
        live.post(&format!("/v1/consents/{id}/revoke"), json!({})).await.ok();
        let entry = listed(&live).await;
        assert_eq!((entry["requested_at"].as_str(), &entry["opted_out_at"]), (Some("2027-03-02T13:00:00.000Z"), &json!(null)));
        let path = format!("/v1/dnc/{}?reason=agreed+anew", entry["id"].as_str().unwrap());
        assert_eq!(live.delete(&path).await.error(), (409, "invalid_state", None));
        world.advance(minutes(10)).await;
        // A second time nothing is asked anew.
        live.post(&format!("/v1/consents/{id}/revoke"), json!({})).await.ok();
        assert_eq!(listed(&live).await["requested_at"], entry["requested_at"]);
        give(&live, json!({ "given_at": "2027-03-02T13:05:00Z" })).await;
        assert_eq!(live.delete(&path).await.status, 204);

        let letter = json!({ "phone_number": "+15002340002", "requested_at": "2027-03-01T09:00:00Z" });
        let entry = live.post("/v1/dnc", letter).await.ok();
        let path = format!("/v1/dnc/{}?reason=a+mistake", entry["id"].as_str().unwrap());
        assert_eq!(live.delete(&path).await.error(), (409, "invalid_state", None));
    }

    /// Whoever had put them on the list before: what they say themselves counts.
    async fn an_entry_of_staff_becomes_an_opt_out_when_the_person_says_so(world: &mut World) {
        let tenant = world.tenant().await;
        let live = live(world, &tenant).await;
        let entry = live.post("/v1/dnc", json!({ "phone_number": NUMBER })).await.ok();
        assert_eq!(entry["opted_out_at"], json!(null));
        let path = format!("/v1/dnc/{}?reason=a+mistake", entry["id"].as_str().unwrap());
        opts_out(world, tenant.id, Env::Live, Source::SmsStop).await;
        let said = listed(&live).await;
        assert_eq!((said["source"].as_str(), said["opted_out_at"].as_str()), (Some("manual"), Some("2027-03-02T13:00:00.000Z")));
        assert_eq!(live.delete(&path).await.error(), (409, "invalid_state", None));
        // In the sandbox nobody is protected, and one that staff have made goes with a reason.
        opts_out(world, tenant.id, Env::Test, Source::OptOutVoice).await;
        let of_sandbox = listed(&tenant.api).await["id"].as_str().unwrap().to_owned();
        assert_eq!(tenant.api.delete(&format!("/v1/dnc/{of_sandbox}?reason=again")).await.status, 204);
        let other = live.post("/v1/dnc", json!({ "phone_number": "+15002340002" })).await.ok();
        assert_eq!(live.delete(&format!("/v1/dnc/{}?reason=a+mistake", other["id"].as_str().unwrap())).await.status, 204);
    }

    async fn a_list_brings_in_what_is_good_and_says_what_is_not(world: &mut World) {
        let tenant = world.tenant().await;
        for (csv, said) in [
            ("phone_number,channels,purposes,tier,method,given_at\n", "`seller` is missing"),
            ("phone_number,seller,channels,purposes,tier,method,given_at,colour\n", "`colour` is not known"),
            ("seller,channels,purposes,tier,method,given_at\n", "`phone_number` or `email`"),
            ("", "is empty"),
        ] {
            let refused = tenant.api.upload("/v1/consents/import", csv).await;
            assert_eq!(refused.error().0, 422, "{csv}");
            assert!(refused.body["error"]["message"].as_str().unwrap().contains(said), "{csv}: {:#}", refused.body);
        }
        let revoked = give(&tenant.api, json!({ "phone_number": "+15002340007", "tier": "express", "request_copy": null, "channels": ["phone"], "covers_automated_voice": false, "method": "desk" })).await;
        tenant.api.post(&format!("/v1/consents/{revoked}/revoke"), json!({})).await.ok();
        let rows = [
            "+15002340001,,Acme,phone;sms,marketing,express,desk,2026-11-02T09:30:00Z,",
            ",ada@example.com,Acme,email,marketing service,existing_contract,desk,2026-11-02T09:30:00Z,C-17",
            "+15002340001,,acme,sms phone,marketing,express,desk,2026-11-02T10:30:00+01:00,",
            "12,,Acme,phone,marketing,express,desk,2026-11-02T09:30:00Z,",
            "+15002340003,,,phone,marketing,express,desk,2026-11-02T09:30:00Z,",
            "+15002340003,,Acme,fax,marketing,express,desk,2026-11-02T09:30:00Z,",
            "+15002340003,,Acme,phone,marketing,express,desk,2026-11-02,",
            "+15002340003,,Acme,phone,marketing,express_written,desk,2026-11-02T09:30:00Z,",
            "+15002340003,,Acme,phone,marketing,express,desk,2030-11-02T09:30:00Z,",
            "+15002340007,,Acme Ltd.,phone,marketing,express,desk,2026-11-02T09:30:00Z,",
            "+15002340004,,Acme,phone,marketing,express,desk,2026-11-02T09:30:00Z,,too much",
            "+15002340007,,Acme Ltd.,phone,marketing,express,at the desk,2026-11-02T09:30:00Z,",
        ];
        let csv = format!("{HEADER}\n{}\n", rows.join("\n"));
        let (counts, refused) = import(world, &tenant, &csv).await;
        assert_eq!(counts, json!([2, 1, 9]));
        let refused: Vec<_> = refused.iter().map(|(line, code, param)| (*line, &**code, param.as_deref())).collect();
        assert_eq!(refused, [
            (5, "validation_failed", Some("phone_number")), (6, "validation_failed", Some("seller")), (7, "validation_failed", Some("channels[0]")),
            (8, "validation_failed", Some("given_at")), (9, "validation_failed", Some("request_copy")), (10, "validation_failed", Some("given_at")),
            (11, "invalid_state", None), (12, "validation_failed", None), (13, "invalid_state", None),
        ]);
        assert_eq!(read(&tenant.api, &revoked).await["status"], "revoked", "no list brings back what was taken back");
        // A second time brings nothing new.
        let (counts, _) = import(world, &tenant, &csv).await;
        assert_eq!(counts, json!([0, 3, 9]));
        assert_eq!(world.rows("consents").await, 3);
    }

    /// A stop in the middle: each row comes in once.
    async fn a_list_goes_on_after_a_restart(world: &mut World) {
        let tenant = world.tenant().await;
        let row = |n: u32| format!("+1500300{n:04},,Acme,phone,marketing,express,desk,2026-11-02T09:30:00Z,\n");
        let csv: String = std::iter::once(format!("{HEADER}\n")).chain((0..600).map(row)).collect();
        let job = tenant.api.upload("/v1/consents/import", csv).await.ok();
        world.restart().await;
        world.advance(minutes(1)).await;
        let job = tenant.api.get(&format!("/v1/imports/{}", job["id"].as_str().unwrap())).await.ok();
        assert_eq!((job["status"].as_str(), job["rows"].as_i64(), job["rejected"].as_i64()), (Some("completed"), Some(600), Some(0)));
        assert_eq!((job["accepted"].as_i64(), world.rows("consents").await), (Some(600), 600));
    }
}
