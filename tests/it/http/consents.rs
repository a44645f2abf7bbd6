//! Consents: recorded as they were given, found, imported, proved by a file, and kept.
use crate::{
    on_both,
    world::{Answer, Api, World, seconds},
};
use entities::values::{Env, Scopes};
use reqwest::Method;
use serde_json::{Value, json};

pub const NUMBER: &str = "+15002340001";

pub fn consent(change: &Value) -> Value {
    let mut body = json!({
        "phone_number": NUMBER,
        "seller": "Acme Ltd.",
        "channels": ["phone", "sms"],
        "purposes": ["marketing"],
        "tier": "express_written",
        "covers_automated_voice": true,
        "method": "web form",
        "request_copy": "I agree to be called by Acme Ltd., also with an artificial voice.",
        "not_a_condition_of_purchase": true,
        "given_at": "2026-11-02T09:30:00.000Z",
    });
    for (name, value) in change.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

pub async fn give(api: &Api, change: Value) -> String {
    let given = api.post("/v1/consents", consent(&change)).await.ok();
    given["id"].as_str().unwrap().to_owned()
}

pub async fn live(world: &World, tenant: &crate::world::Tenant) -> Api {
    world.api(tenant.id, Env::Live, Scopes::all()).await
}

async fn found(api: &Api, query: &str) -> Vec<String> {
    let list = api.get(&format!("/v1/consents?{query}")).await.ok();
    let rows = list["data"].as_array().unwrap().iter();
    rows.map(|row| row["seller"].as_str().unwrap().to_owned()).collect()
}

async fn put(api: &Api, id: &str, kind: &str, file: impl Into<Vec<u8>>) -> Answer {
    let request = api.request(Method::PUT, &format!("/v1/consents/{id}/evidence"));
    api.send(request.header("content-type", kind).body(file.into())).await
}

const PDF: &[u8] = b"%PDF-1.7\nI, Ada Lovelace, agree to be called by Acme Ltd.\n";

on_both! {
    async fn a_consent_is_kept_as_it_was_given(world: &mut World) {
        let tenant = world.tenant().await;
        let made = tenant.api.post("/v1/consents", consent(&json!({ "phone_number": "(500) 234-0001", "name": "Ada" }))).await;
        assert_eq!(made.status, 201);
        let made = made.body;
        assert_eq!((made["phone_number"].as_str(), made["seller"].as_str(), made["status"].as_str()), (Some(NUMBER), Some("Acme Ltd."), Some("valid")));
        assert_eq!((&made["channels"], &made["standing"], made["covers_sms"].as_bool()), (&json!(["phone", "sms"]), &json!(["phone", "sms"]), Some(true)));
        assert_eq!((made["kept_until"].as_str(), made.get("last_used_at")), (Some("2031-11-03T09:30:00.000Z"), None));
        assert!(made["created_by"].as_str().unwrap().contains("vk_test_"));
        assert_eq!(made["request_sha256"].as_str().unwrap().len(), 64);
        // The same facts, written in another way.
        let again = tenant.api.post("/v1/consents", consent(&json!({ "seller": " ACME  LTD. ", "channels": ["sms", "phone"] }))).await;
        assert_eq!((again.status.as_u16(), &again.body["id"]), (200, &made["id"]));
        let other = give(&tenant.api, json!({ "seller": "Acme Inc." })).await;
        assert_ne!(Some(&*other), made["id"].as_str());

        world.restart().await;
        let path = format!("/v1/consents/{}", made["id"].as_str().unwrap());
        let read = tenant.api.get(&path).await.ok();
        assert_eq!(read, made);
        let listed = tenant.api.get("/v1/consents?order=asc").await.ok()["data"][0].clone();
        assert_eq!((&listed["id"], listed.get("request_copy"), listed.get("kept_until")), (&made["id"], None, None));
    }

    async fn what_is_wrong_is_refused_and_changes_nothing(world: &mut World) {
        let tenant = world.tenant().await;
        for (change, param) in [
            (json!({ "phone_number": null }), Some("phone_number")),
            (json!({ "phone_number": "12" }), Some("phone_number")),
            (json!({ "channels": ["email"] }), Some("email")),
            (json!({ "channels": [] }), Some("channels")),
            (json!({ "channels": ["fax"] }), Some("channels[0]")),
            (json!({ "purposes": [] }), Some("purposes")),
            (json!({ "seller": "" }), Some("seller")),
            (json!({ "tier": "implied" }), Some("tier")),
            (json!({ "tier": "existing_contract" }), Some("contract_ref")),
            (json!({ "request_copy": null }), Some("request_copy")),
            (json!({ "given_at": "2027-03-02T13:00:00.001Z" }), Some("given_at")),
            (json!({ "given_at": "1989-12-31T00:00:00Z" }), Some("given_at")),
            (json!({ "given_at": "yesterday" }), Some("given_at")),
            (json!({ "expires_at": "2026-11-02T09:30:00Z" }), Some("expires_at")),
            (json!({ "source_ip": "here" }), Some("source_ip")),
            (json!({ "source_url": "ftp://example.com" }), Some("source_url")),
            (json!({ "recording_id": "00000000-0000-7000-8000-000000000000" }), Some("recording_id")),
            (json!({ "request_copy": "a".repeat(20_001) }), Some("request_copy")),
            (json!({ "agreed": true }), Some("agreed")),
        ] {
            let refused = tenant.api.post("/v1/consents", consent(&change)).await;
            assert_eq!(refused.error(), (422, "validation_failed", param), "{change}");
        }
        assert_eq!(world.rows("consents").await, 0);
        assert_eq!(tenant.api.post("/v1/consents", consent(&json!({ "given_at": "2027-03-02T13:00:00Z" }))).await.status, 201);
        for query in ["status=good", "tier=x", "purpose=x", "phone_number=12", "email=x", "seller=", "colour=red"] {
            assert_eq!(tenant.api.get(&format!("/v1/consents?{query}")).await.error().0, 422, "{query}");
        }
    }

    async fn consents_are_found_by_person_seller_strength_and_state(world: &mut World) {
        let tenant = world.tenant().await;
        let api = &tenant.api;
        give(api, json!({ "seller": "A" })).await;
        give(api, json!({ "seller": "B", "phone_number": "+15002340002", "email": "ada@example.com", "channels": ["email"], "purposes": ["service", "charity_political"] })).await;
        give(api, json!({ "seller": "C", "tier": "existing_contract", "contract_ref": "C-17", "expires_at": "2027-03-02T13:00:10Z" })).await;
        let revoked = give(api, json!({ "seller": "D" })).await;
        api.post(&format!("/v1/consents/{revoked}/revoke"), json!({ "only_this": true })).await.ok();
        for (query, sellers) in [
            ("order=asc", vec!["A", "B", "C", "D"]),
            ("phone_number=%2B15002340001&order=asc", vec!["A", "C", "D"]),
            ("phone_number=%2B15002340001&status=valid", vec!["C", "A"]),
            ("email=Ada@Example.com", vec!["B"]),
            ("seller=b", vec!["B"]),
            ("tier=existing_contract", vec!["C"]),
            ("purpose=charity_political", vec!["B"]),
            ("purpose=marketing&status=revoked", vec!["D"]),
            ("status=expired", vec![]),
            ("limit=1", vec!["D"]),
        ] {
            assert_eq!(found(api, query).await, sellers, "{query}");
        }
        world.advance(seconds(10)).await;
        assert_eq!(found(api, "status=expired").await, ["C"], "at its very moment");
        assert_eq!(found(api, "status=valid&order=asc").await, ["A", "B"]);
    }

    async fn another_workspace_and_another_environment_have_none_of_it(world: &mut World) {
        let (tenant, stranger) = (world.tenant().await, world.tenant().await);
        let id = give(&tenant.api, json!({})).await;
        put(&tenant.api, &id, "application/pdf", PDF).await.ok();
        let live = live(world, &tenant).await;
        for api in [&stranger.api, &live] {
            let path = format!("/v1/consents/{id}");
            for refused in [
                api.get(&path).await,
                api.delete(&path).await,
                api.post(&format!("{path}/revoke"), json!({})).await,
                api.get(&format!("{path}/evidence")).await,
                put(api, &id, "application/pdf", PDF).await,
            ] {
                assert_eq!(refused.error(), (404, "not_found", None));
            }
            assert_eq!(found(api, "").await, [""; 0]);
            // The same facts are another consent there.
            assert_ne!(give(api, json!({})).await, id);
        }
        assert_eq!(tenant.api.get(&format!("/v1/consents/{id}")).await.ok()["status"], "valid");
    }

    /// 16 CFR 310.5 and § 7a UWG: five years.
    async fn a_live_consent_is_kept_and_one_of_the_sandbox_may_go(world: &mut World) {
        let tenant = world.tenant().await;
        let live = live(world, &tenant).await;
        let kept = give(&live, json!({})).await;
        let refused = live.delete(&format!("/v1/consents/{kept}")).await;
        assert_eq!(refused.error(), (409, "in_use", None));
        assert!(refused.body["error"]["message"].as_str().unwrap().contains("2031-11-03"), "{:#}", refused.body);
        live.post(&format!("/v1/consents/{kept}/revoke"), json!({})).await.ok();
        assert_eq!(live.delete(&format!("/v1/consents/{kept}")).await.error().0, 409, "a revoked one is kept, too");

        let id = give(&tenant.api, json!({})).await;
        put(&tenant.api, &id, "application/pdf", PDF).await.ok();
        assert_eq!((world.recorded_files().len(), world.rows("consent_files").await), (1, 1));
        assert_eq!(tenant.api.delete(&format!("/v1/consents/{id}")).await.status, 204);
        assert_eq!((world.recorded_files().len(), world.rows("consent_files").await, world.rows("consent_texts").await), (0, 0, 1));
        assert_eq!(tenant.api.get(&format!("/v1/consents/{id}")).await.error().0, 404);
        assert_eq!(tenant.api.delete(&format!("/v1/consents/{id}")).await.error().0, 404);
    }

    async fn its_evidence_is_sealed_and_stays(world: &mut World) {
        let tenant = world.tenant().await;
        let id = give(&tenant.api, json!({})).await;
        let path = format!("/v1/consents/{id}/evidence");
        assert_eq!(tenant.api.get(&path).await.error(), (404, "not_found", None));
        for (kind, file, expected) in [
            ("text/html", b"<script>".to_vec(), (415, "unsupported_media_type", None)),
            ("application/json", b"{}".to_vec(), (415, "unsupported_media_type", None)),
            ("application/pdf", b"<script>".to_vec(), (422, "validation_failed", None)),
            ("image/png", PDF.to_vec(), (422, "validation_failed", None)),
            ("text/plain", vec![0xff, 0xfe], (422, "validation_failed", None)),
            ("application/pdf", Vec::new(), (422, "validation_failed", None)),
            ("application/pdf", [PDF, &vec![b' '; 10 * 1024 * 1024]].concat(), (413, "payload_too_large", None)),
        ] {
            assert_eq!(put(&tenant.api, &id, kind, file).await.error(), expected, "{kind}");
        }
        assert_eq!((world.recorded_files().len(), world.rows("consent_files").await), (0, 0));

        let told = put(&tenant.api, &id, "application/pdf", PDF).await.ok()["evidence"].clone();
        assert_eq!((told["content_type"].as_str(), told["bytes"].as_u64()), (Some("application/pdf"), Some(PDF.len() as u64)));
        let again = put(&tenant.api, &id, "application/pdf", PDF).await.ok();
        assert_eq!(again["evidence"], told, "the same file again");
        let other = put(&tenant.api, &id, "text/plain", "something else").await;
        assert_eq!(other.error(), (409, "in_use", None));

        let files = world.recorded_files();
        let [file] = &files[..] else { panic!("{files:?}") };
        let sealed = std::fs::read(file).unwrap();
        assert!(!sealed.windows(5).any(|at| at == b"%PDF-") && !sealed.windows(8).any(|at| at == b"Lovelace"), "it can be read");
        world.restart().await;
        let read = tenant.api.get(&path).await;
        assert_eq!((read.status.as_u16(), read.body.as_str()), (200, Some(std::str::from_utf8(PDF).unwrap())));
        let header = |name: &str| read.headers[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), "application/pdf");
        assert_eq!(header("content-disposition"), format!("attachment; filename=\"consent-{id}.pdf\""));
        assert_eq!(header("content-security-policy"), "default-src 'none'; sandbox");
    }

    /// A store that is away: nothing counts, and nothing is left behind.
    async fn an_upload_that_fails_is_no_evidence(world: &mut World) {
        let tenant = world.tenant().await;
        let id = give(&tenant.api, json!({})).await;
        world.block_recordings(true);
        assert_eq!(put(&tenant.api, &id, "application/pdf", PDF).await.error().0, 503);
        world.block_recordings(false);
        assert_eq!(tenant.api.get(&format!("/v1/consents/{id}")).await.ok()["evidence"], json!(null));
        assert_eq!(world.rows("consent_files").await, 1);
        assert_eq!(put(&tenant.api, &id, "application/pdf", PDF).await.status, 200);
        world.advance(seconds(2 * 3600)).await;
        assert_eq!((world.rows("consent_files").await, world.recorded_files().len()), (1, 1), "what was cut off is swept");
        assert_eq!(tenant.api.get(&format!("/v1/consents/{id}/evidence")).await.status, 200);
    }
}
